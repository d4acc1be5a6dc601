"""The one door to the machine: asks engine sessions about positions of a game."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol

import numpy as np

from train.engine.sessions import Sessions, make_sessions
from train.engine.trees.options import EngineOptions
from train.search.report import SearchReport
from train.ui.games.game_tree import Node, actions_of, path_to
from train.ui.games.levels import opponent_for
from train.ui.games.thoughts import Idea, Thought
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Sizes, sizes_of

MAX_ENGINES = 4
_OPTIONS = EngineOptions(batch_sizes=(1,), trees=16, nodes=2048)


class Thinker(Protocol):
    """Searches positions of games."""

    async def think(self, rules: Rules, node: Node, simulations: int, *, is_move: bool) -> Thought:
        """Search a position in which the game goes on; the searches of machines' moves (`is_move`)
        learn nothing from others.

        Raises:
          UsageError: no machine can play these rules.
        """
        ...

    def prepare(self, rules: Rules) -> None:
        """Begin to compile what these rules need, so that the first move comes sooner."""
        ...

    def is_ready(self, rules: Rules) -> bool:
        """Whether everything for these rules is compiled."""
        ...

    def forget(self, root: Node) -> None:
        """Let go of what is kept of a game, which nobody plays any more."""
        ...


class _Followed(NamedTuple):
    """A session that follows a game."""

    sessions: Sessions
    name: str


_Engine = asyncio.Future[Sessions]


class EngineThinker:
    """Thinks by engine sessions: one engine a shape of rules, two sessions a game.

    A session keeps what it has searched. So machines' moves have one of their own: hints and
    evaluations, which search longer, would make a weak level stronger.
    """

    def __init__(self, player: str = "") -> None:
        """Prepare without compiling anything.

        Args:
          player: a name of docs/players.md, in place of the one that `levels` chooses.
        """
        self._player = player
        self._engines: dict[tuple[str, Sizes], _Engine] = {}  # the one asked last comes last
        self._compiling: set[_Engine] = set()
        self._followed: dict[tuple[Node, bool], _Followed] = {}  # by root of the game, is_move
        self._turns: dict[Node, asyncio.Lock] = {}

    async def think(self, rules: Rules, node: Node, simulations: int, *, is_move: bool) -> Thought:
        """Search a position in which the game goes on.

        Raises:
          UsageError: no machine can play these rules.
        """
        path = path_to(node)
        async with self._turns.setdefault(path[0], asyncio.Lock()):
            sessions = await self._sessions(rules)
            name = self._follow(sessions, rules, path, is_move=is_move)
            report = await sessions.evaluate(name, simulations=simulations)
        return _to_thought(report, simulations)

    def forget(self, root: Node) -> None:
        """Let go of what is kept of a game, which nobody plays any more."""
        self._turns.pop(root, None)
        for is_move in (False, True):
            followed = self._followed.pop((root, is_move), None)
            if followed is not None:
                followed.sessions.close(followed.name)

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

    def prepare(self, rules: Rules) -> None:
        """Begin to compile what these rules need, so that the first move comes sooner."""
        self._engine(rules)

    def is_ready(self, rules: Rules) -> bool:
        """Whether everything for these rules is compiled."""
        return self._engine(rules).done()

    async def _sessions(self, rules: Rules) -> Sessions:
        """The sessions for these rules, once they are compiled. Until the caller waits again,
        nothing ends them."""
        while True:
            engine = self._engine(rules)
            sessions = await asyncio.shield(engine)
            if engine in self._engines.values():  # Others may have been asked for meanwhile.
                return sessions

    def _engine(self, rules: Rules) -> _Engine:
        """The engine for these rules, compiled in a thread when it is first asked for."""
        player = self._player or opponent_for(rules).name
        key = player, sizes_of(rules)
        engine = self._engines.pop(key, None)
        if engine is None:
            if len(self._engines) >= MAX_ENGINES:
                oldest = next(iter(self._engines))
                self._engines.pop(oldest).add_done_callback(self._end)
            engine = asyncio.ensure_future(
                asyncio.to_thread(make_sessions, player, rules, options=_OPTIONS)
            )
            self._compiling.add(engine)
            engine.add_done_callback(lambda done: self._note(key, done))
        self._engines[key] = engine
        return engine

    def _note(self, key: tuple[str, Sizes], engine: _Engine) -> None:
        """Note that an engine is compiled. One that could not be made is forgotten: the next
        question tries again."""
        self._compiling.discard(engine)
        is_made = not engine.cancelled() and engine.exception() is None
        if not is_made and self._engines.get(key) is engine:
            del self._engines[key]

    def _end(self, engine: _Engine) -> None:
        """End an engine that is compiled, if it could be made, and its sessions."""
        if engine.cancelled() or engine.exception() is not None:
            return
        sessions = engine.result()
        for key in [key for key, own in self._followed.items() if own.sessions is sessions]:
            del self._followed[key]
        sessions.shut_down()

    def _follow(self, sessions: Sessions, rules: Rules, path: list[Node], *, is_move: bool) -> str:
        """Bring a session of the game to a position; what it has searched on the way is kept."""
        key, actions = (path[0], is_move), actions_of(path)
        followed = self._followed.get(key)
        if followed is None or followed.sessions is not sessions:
            followed = _Followed(sessions, sessions.open(rules, position=path[0].state))
            self._followed[key] = followed
        name = followed.name
        standing = sessions.game(name)
        shared = 0
        for played, wanted in zip(standing.actions, actions, strict=False):
            if played != wanted:
                break
            shared += 1
        start = standing.ply - len(standing.actions)
        sessions.takeback(name, start + shared)
        for action in actions[shared:]:
            sessions.apply(name, action)
        return name


def _to_thought(report: SearchReport, simulations: int) -> Thought:
    """A report as a thought; the simulations are those that were asked for."""
    slots = np.flatnonzero(report.legal)
    slots = slots[np.argsort(-report.policy[slots], kind="stable")]
    policy = tuple((int(report.actions[slot]), float(report.policy[slot])) for slot in slots)
    seen = [each for each in report.candidates if each.visits]
    ideas = [Idea(each.action, each.win_chance, each.policy, each.line) for each in seen]
    if not ideas:  # A search without visits, such as the raw policy.
        ideas = [Idea(action, report.win_chance, share, (action,)) for action, share in policy]
    action = int(report.action)
    # The choice of the search leads, whatever its visits.
    ideas.sort(key=lambda idea: (idea.action != action, -idea.share))
    owners, chances = report.owners, report.win_chances
    if owners is not None:
        owners = tuple(map(tuple, owners.reshape(-1, owners.shape[-1]).tolist()))
    return Thought(action, tuple(chances), tuple(ideas), policy, owners, simulations)
