"""The machine of a board: its levels, and its searches of positions in engine sessions."""

import asyncio
import contextlib
import dataclasses
import functools
import secrets
import time
from collections.abc import Callable
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

from train.checkpoints import pretrained
from train.engine.options import EngineOptions
from train.engine.sessions import Sessions
from train.players.registry import make_evaluating_player
from train.review.player import default_player
from train.runtime.errors import UsageError
from train.search.report import SearchReport
from train.ui.game_tree import Node
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Sizes, sizes_of
from wallgo_jax.notation import COLOURS

PERSON = "person"


class Level(NamedTuple):
    """A strength of play."""

    name: str  # in the page and on the command line
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
HINT = Level("hint", 256, 0.0)
GLANCE = Level("glance", 64, 0.0)
"""The search of the evaluation bar and of the territory estimate."""
ZERO = "wjx"
"""The player whose Elo is 0. The lower levels win and lose games against it; from a player that
loses all of them, no distance can be measured."""
CARD_KEY, CARD_KEY_HOW = "levels", "levels_measured"
"""Entries of a model's card: `elo`, and `low` to `high`, its 95 % interval, by the name of the
level; and the games that gave it."""


@functools.cache
def ratings_of(player: str) -> dict[str, dict[str, float]]:
    """The ratings of a machine by the name of the level, where its weights have a card; a level
    that is missing was not measured."""
    kind, _, model = player.partition(":")
    return pretrained.read_card(model).get(CARD_KEY, {}) if kind == "pretrained" else {}


def check_seat(seat: str) -> str:
    """Refuse what is neither PERSON nor the name of a level with a UsageError."""
    if seat not in (*LEVELS, PERSON):
        raise UsageError(f"level {seat!r} is not one of {', '.join((*LEVELS, PERSON))}")
    return seat


Seat = Annotated[str, AfterValidator(check_seat)]
"""PERSON, or the name of the machine's level."""


def seats_of_person(rules: Rules, *, level: str, colour: str) -> tuple[str, ...]:
    """The seats of a person who plays one colour, the others at a level or PERSON.

    Raises:
      UsageError: there is no such level, or the rules have no such colour.
    """
    check_seat(level)
    colours = COLOURS[: rules.players]
    if colour.capitalize() not in colours:
        raise UsageError(f"play: colour {colour!r} is not one of {', '.join(colours)}")
    return tuple(PERSON if each == colour.capitalize() else level for each in colours)


MAX_ENGINES = 4
_Engine = asyncio.Future[Sessions]


@dataclasses.dataclass
class Compilation:
    """How far an engine is compiled."""

    began: float  # time in seconds, as `time.monotonic` gives it
    done: int = 0  # programs that are compiled
    total: int = 0  # programs in all; 0 until that is known


class Machine:
    """Searches by engine sessions: one engine a shape of rules, a session of its own for each
    search, so that hints do not make a weak level stronger.

    Attributes:
      listeners: called whenever a program is compiled.
    """

    def __init__(self, player: str = "") -> None:
        """Prepare without compiling anything; `player` is a name of docs/players.md, in place of
        the one that comes with the rules."""
        self.listeners: set[Callable[[], None]] = set()
        self._player = player
        self._engines: dict[tuple[str, Sizes], _Engine] = {}  # the one asked last comes last
        self._compiling: dict[_Engine, Compilation] = {}

    def name_for(self, rules: Rules) -> str:
        """The name of the player that plays these rules."""
        return self._player or default_player(rules)

    async def search(self, rules: Rules, node: Node, level: Level) -> SearchReport:
        """Search a position in which the game goes on; the report's action is the level's move.

        Raises:
          UsageError: no machine can play these rules.
        """
        while True:
            engine = self.prepare(rules)
            sessions = await asyncio.shield(engine)
            if engine in self._engines.values():  # Others may have been asked for meanwhile.
                break
        name = sessions.open(rules, position=node.position)
        budget = {"simulations": level.simulations, "temperature": level.temperature}
        answer = sessions.ask(name, **budget)
        sessions.close(name)  # It is answered all the same.
        report = await asyncio.wrap_future(answer)
        return dataclasses.replace(report, simulations=level.simulations)

    def shut_down(self) -> None:
        """End all engines."""
        for engine in self._engines.values():
            if engine.done():
                self._end(engine)
        self._engines.clear()

    @property
    def is_compiling(self) -> bool:
        """Whether a thread compiles something, which nothing stops."""
        return bool(self._compiling)

    def prepare(self, rules: Rules) -> _Engine:
        """The engine for these rules, compiled in a thread when it is first asked for."""
        key = player, _ = self._key_of(rules)
        engine = self._engines.pop(key, None)
        if engine is None:
            if len(self._engines) >= MAX_ENGINES:
                oldest = next(iter(self._engines))
                self._engines.pop(oldest).add_done_callback(self._end)
            options = EngineOptions(
                batch_sizes=(1,), trees=16, nodes=2048, seed=secrets.randbelow(2**31)
            )
            state, loop = Compilation(time.monotonic()), asyncio.get_running_loop()

            def note(done: int, total: int) -> None:
                state.done, state.total = max(done, state.done), total
                with contextlib.suppress(RuntimeError):  # The loop has ended.
                    loop.call_soon_threadsafe(self._tell)

            def make() -> Sessions:
                return Sessions(make_evaluating_player(player), rules, options, note)

            engine = asyncio.ensure_future(asyncio.to_thread(make))
            self._compiling[engine] = state
            engine.add_done_callback(self._note)
        self._engines[key] = engine
        return engine

    def compilation(self, rules: Rules) -> Compilation | None:
        """How far the engine for these rules is compiled; None where none is being compiled."""
        engine = self._engines.get(self._key_of(rules))
        return None if engine is None else self._compiling.get(engine)

    def _key_of(self, rules: Rules) -> tuple[str, Sizes]:
        return self.name_for(rules), sizes_of(rules)

    def _note(self, engine: _Engine) -> None:
        """Note that an engine is compiled. One that failed is forgotten: the next search tries
        again."""
        self._compiling.pop(engine, None)
        if engine.cancelled() or engine.exception() is not None:
            self._engines = {k: other for k, other in self._engines.items() if other is not engine}
        self._tell()

    def _tell(self) -> None:
        for listener in list(self.listeners):
            listener()

    @staticmethod
    def _end(engine: _Engine) -> None:
        """End a compiled engine, unless it failed, and its sessions."""
        if not engine.cancelled() and engine.exception() is None:
            engine.result().shut_down()
