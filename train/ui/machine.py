"""The machine of a board: its levels, and an engine for each shape of rules, compiled when it is
first asked for."""

import asyncio
import contextlib
import functools
import secrets
from collections.abc import Callable
from typing import NamedTuple

from train.checkpoints import pretrained
from train.engine.options import EngineOptions
from train.engine.sessions import Sessions
from train.players.registry import make_evaluating_player
from train.review.player import default_player
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Sizes, sizes_of
from wallgo_jax.notation import COLOURS

PERSON = "person"


class Level(NamedTuple):
    """A strength of play."""

    name: str  # on the page and in Python
    simulations: int  # of each move's search
    temperature: float
    """A move is drawn with chances policy^(1 / temperature) of the search's improved policy; 0
    plays the search's own choice."""


# The search of a player weighs a value by 15 logits and more: low temperatures change nothing.
LEVELS = {
    level.name: level
    for level in (
        Level("beginner", 1, 5.0),
        Level("novice", 1, 3.0),
        Level("casual", 4, 1.5),
        Level("club", 16, 1.0),
        Level("advanced", 32, 1.0),
        Level("strong", 64, 0.0),
        Level("expert", 256, 0.0),
        Level("strongest", 1024, 0.0),
    )
}
DEFAULT_LEVEL = "novice"
HINT = 256
"""Simulations of a hint and of a review's positions."""
GLANCE = 64
"""Simulations of the evaluation bar and of the territory estimate."""
ZERO = "wjx"
"""The player whose Elo is 0. The lower levels win and lose games against it; from a player that
loses all of them, no distance can be measured."""
CARD_KEY, CARD_KEY_HOW = "levels", "levels_measured"
"""Entries of a model's card: `elo`, and `low` to `high`, its 95 % interval, by the name of the
level; and the games that gave it."""
MAX_ENGINES = 4
_Engine = asyncio.Future[Sessions]


@functools.cache
def ratings_of(player: str) -> dict[str, dict[str, float]]:
    """The ratings of a machine by the name of the level, where its weights have a card; a level
    that is missing was not measured."""
    kind, _, model = player.partition(":")
    return pretrained.read_card(model).get(CARD_KEY, {}) if kind == "pretrained" else {}


def seats_of_person(rules: Rules, *, level: str, colour: str) -> list[str]:
    """The seats of a person who plays one colour, the others at a level or PERSON.

    Raises:
      UsageError: there is no such level, or the rules have no such colour.
    """
    if level not in (*LEVELS, PERSON):
        raise UsageError(f"level {level!r} is not one of {', '.join((*LEVELS, PERSON))}")
    colours = COLOURS[: rules.players]
    if colour.capitalize() not in colours:
        raise UsageError(f"play: colour {colour!r} is not one of {', '.join(colours)}")
    return [PERSON if each == colour.capitalize() else level for each in colours]


class Machine:
    """Plays and analyses by engine sessions of one player, or of the one that comes with the
    rules."""

    def __init__(self, player: str = "") -> None:
        """Prepare without compiling anything; `player` is a name of docs/players.md, in place of
        the one that comes with the rules."""
        self.player = player
        self._engines: dict[tuple[str, Sizes], _Engine] = {}  # the one asked last comes last
        self._progress: dict[_Engine, list[Callable[[int, int], None]]] = {}

    def name_for(self, rules: Rules) -> str:
        """The name of the player that plays these rules."""
        return self.player or default_player(rules)

    @property
    def is_compiling(self) -> bool:
        """Whether a thread compiles something, which nothing stops."""
        return bool(self._progress)

    async def prepare(self, rules: Rules, tell: Callable[[int, int], None]) -> Sessions:
        """The engine for these rules; while it is compiled, `tell` gets the number of programs that
        are, and of all.

        Raises:
          UsageError: no machine can play these rules.
        """
        while True:
            engine = self._engine(rules)
            if engine in self._progress:
                tell(0, 0)
                self._progress[engine].append(tell)
            sessions = await asyncio.shield(engine)
            if engine in self._engines.values():  # Others may have been asked for meanwhile.
                return sessions

    def shut_down(self) -> None:
        """End all engines."""
        for engine in self._engines.values():
            if engine.done():
                _end(engine)
        self._engines.clear()

    def _engine(self, rules: Rules) -> _Engine:
        key = player, _ = self.name_for(rules), sizes_of(rules)
        engine = self._engines.pop(key, None)
        if engine is None:
            if len(self._engines) >= MAX_ENGINES:
                oldest = next(iter(self._engines))
                self._engines.pop(oldest).add_done_callback(_end)
            engine = self._compile(player, rules)
        self._engines[key] = engine
        return engine

    def _compile(self, player: str, rules: Rules) -> _Engine:
        """An engine that a thread compiles."""
        options = EngineOptions(
            batch_sizes=(1,), trees=16, nodes=2048, seed=secrets.randbelow(2**31)
        )
        loop = asyncio.get_running_loop()

        def note(done: int, total: int) -> None:
            for tell in list(self._progress.get(engine, [])):
                with contextlib.suppress(RuntimeError):  # The loop has ended.
                    loop.call_soon_threadsafe(tell, done, total)

        def make() -> Sessions:
            return Sessions(make_evaluating_player(player), rules, options, note)

        engine = asyncio.ensure_future(asyncio.to_thread(make))
        self._progress[engine] = []
        engine.add_done_callback(self._forget)
        return engine

    def _forget(self, engine: _Engine) -> None:
        """Note that an engine is compiled; one that failed is forgotten, so that the next search
        tries again."""
        self._progress.pop(engine, None)
        if engine.cancelled() or engine.exception() is not None:
            self._engines = {k: other for k, other in self._engines.items() if other is not engine}


def _end(engine: _Engine) -> None:
    """End a compiled engine, unless it failed, and its sessions."""
    if not engine.cancelled() and engine.exception() is None:
        engine.result().shut_down()
