"""The one door to the machine: asks engine sessions about positions of a game."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol

from train.checkpoints.calibration import win_chance
from train.engine.answers import Evaluation, SessionError
from train.engine.sessions import Sessions, make_sessions
from train.engine.trees.options import EngineOptions
from train.runtime.errors import UsageError
from train.ui.games.game_tree import Node, actions_of, path_to
from train.ui.games.levels import opponent_for
from train.ui.games.thoughts import Idea, Thought
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Sizes, sizes_of
from wallgo_jax.notation import parse_action

MAX_ENGINES = 4
_OPTIONS = EngineOptions(batch_sizes=(1,), trees=16, nodes=2048)


class Thinker(Protocol):
    """Searches positions of games."""

    async def think(self, rules: Rules, node: Node, simulations: int) -> Thought:
        """Search a position in which the game goes on.

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
    """A session and the game that it follows, by the root of the game's tree."""

    sessions: Sessions
    name: str


class EngineThinker:
    """Thinks by engine sessions: one engine a shape of rules, one session a game."""

    def __init__(self, player: str = "") -> None:
        """Prepare without compiling anything.

        Args:
          player: a name of docs/players.md, in place of the one that `levels` chooses.
        """
        self._player = player
        self._engines: dict[tuple[str, Sizes], asyncio.Future[Sessions]] = {}
        self._followed: dict[Node, _Followed] = {}
        self._turns: dict[Node, asyncio.Lock] = {}

    async def think(self, rules: Rules, node: Node, simulations: int) -> Thought:
        """Search a position in which the game goes on.

        Raises:
          UsageError: no machine can play these rules.
        """
        sessions = await asyncio.shield(self._engine(rules))
        path = path_to(node)
        async with self._turns.setdefault(path[0], asyncio.Lock()):
            try:
                name = self._follow(sessions, rules, path)
                found = await sessions.evaluate(name, simulations=simulations, details=True)
            except SessionError as error:
                raise UsageError(str(error)) from None
        return _to_thought(found, rules, simulations)

    def forget(self, root: Node) -> None:
        """Let go of what is kept of a game, which nobody plays any more."""
        self._turns.pop(root, None)
        followed = self._followed.pop(root, None)
        if followed is not None:
            followed.sessions.close(followed.name)

    def shut_down(self) -> None:
        """End all engines."""
        for engine in self._engines.values():
            if engine.done() and not engine.cancelled() and engine.exception() is None:
                engine.result().shut_down()
        self._engines.clear()
        self._followed.clear()

    def prepare(self, rules: Rules) -> None:
        """Begin to compile what these rules need, so that the first move comes sooner."""
        self._engine(rules)

    def is_ready(self, rules: Rules) -> bool:
        """Whether everything for these rules is compiled."""
        return self._engine(rules).done()

    def _engine(self, rules: Rules) -> asyncio.Future[Sessions]:
        """The engine for these rules, compiled in a thread when it is first asked for."""
        player = self._player or opponent_for(rules).name
        key = player, sizes_of(rules)
        if key not in self._engines:
            if len(self._engines) >= MAX_ENGINES:
                self._drop_oldest()
            engine = asyncio.ensure_future(
                asyncio.to_thread(make_sessions, player, rules, options=_OPTIONS)
            )
            engine.add_done_callback(lambda done: self._note(key, done))
            self._engines[key] = engine
        return self._engines[key]

    def _note(self, key: tuple[str, Sizes], engine: asyncio.Future[Sessions]) -> None:
        """Forget an engine that could not be made: the next question tries again."""
        if engine.cancelled() or engine.exception() is not None:
            self._engines.pop(key, None)

    def _drop_oldest(self) -> None:
        key = next(iter(self._engines))
        engine = self._engines.pop(key)
        if engine.done() and engine.exception() is None:
            sessions = engine.result()
            for root in [r for r, kept in self._followed.items() if kept.sessions is sessions]:
                self.forget(root)
            sessions.shut_down()

    def _follow(self, sessions: Sessions, rules: Rules, path: list[Node]) -> str:
        """Bring the game's session to a position; what it has searched on the way is kept."""
        root, actions = path[0], actions_of(path)
        if root not in self._followed:
            name = sessions.open(rules, position=root.state)
            self._followed[root] = _Followed(sessions, name)
        name = self._followed[root].name
        standing = sessions.standing(name)
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


def _to_thought(found: Evaluation, rules: Rules, simulations: int) -> Thought:
    """An answer as a thought; the simulations are those that were asked for."""
    assert found.action is not None, "a game that goes on has a best move"

    def action_of(move: str) -> int:
        return parse_action(move, grid=rules.size).action

    policy = tuple((action_of(move), chance) for move, chance in found.policy or ())
    policy = policy or ((found.action, 1.0),)
    shares = dict(policy)
    ideas = [
        Idea(
            action=action_of(candidate.move),
            win_chance=candidate.win_chance,
            share=shares.get(action_of(candidate.move), 0.0),
            line=tuple(action_of(move) for move in candidate.line),
        )
        for candidate in found.candidates or ()
    ]
    if not ideas:  # A search without visits, such as the raw policy.
        ideas = [Idea(action, found.win_chance, share, (action,)) for action, share in policy]
    # The choice of the search leads, whatever its visits.
    ideas.sort(key=lambda idea: (idea.action != found.action, -idea.share))
    return Thought(
        action=found.action,
        chances=_chances(found, rules.players),
        ideas=tuple(ideas),
        policy=policy,
        owners=found.owners,
        simulations=simulations,
    )


def _chances(found: Evaluation, players: int) -> tuple[float, ...]:
    """Each player's chance to win; of two players that with the best move, as reviews and hints
    tell it, not the mean over all that was searched."""
    if players == 2:
        own = found.candidates[0].win_chance if found.candidates else found.win_chance
        return (own, 1 - own) if found.player == 0 else (1 - own, own)
    values = found.evaluation
    assert isinstance(values, tuple)
    return tuple(float(win_chance(value, players=players)) for value in values)
