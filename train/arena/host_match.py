"""Matches with other programs: the games are played on the host, many at once.

In each round every game makes a ply. A player that is a program is asked for all its games at once,
so that it may search them together; any other acts on all of its own in one batch. A program that
makes an illegal move loses that game. One that ends or is too slow loses the games in which its
answer is missing; another start serves the others.

G games, B of them at a time, P = 2 players.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.arena.openings import OpeningOptions, open_games
from train.arena.result import MatchResult
from train.players.basic import Player
from train.players.external import ExternalAct, Message, Program, ProgramError, short
from train.runtime.host import fetch
from wallgo_jax.game import actions as actions_lib
from wallgo_jax.game import referee
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import PRESETS, Rules, name_of
from wallgo_jax.game.state import State, initial_state, make_variant
from wallgo_jax.notation import CANONICAL_SIDES, format_action, parse_action
from wallgo_jax.view.illegality import illegality
from wallgo_jax.view.snapshot import take_snapshot

_NUMBERS = itertools.count(1)
"""Of sessions: a program may play several matches."""


def is_external(player: Player) -> bool:
    """Whether a player is another program."""
    return isinstance(player.act, ExternalAct)


@dataclasses.dataclass(frozen=True)
class _Session:
    """A game as a program knows it."""

    program: Program
    name: str
    plies: int  # that it knows


@dataclasses.dataclass
class _Game:
    """A game of a match; the arrays of its state are NumPy's."""

    number: int
    seats: tuple[int, int]  # the entrant at each
    state: State
    actions: list[int]
    rewards: np.ndarray
    draws: np.ndarray  # uint32[K], random bits of the plies that are drawn after the setup
    is_over: bool
    forfeit: str = ""  # why a player lost it without the rules
    sessions: dict[int, _Session] = dataclasses.field(default_factory=dict)  # by entrant

    @property
    def side(self) -> int:
        """The entrant whose turn it is."""
        return self.seats[int(self.state.position.player)]

    @property
    def drawn_ply(self) -> int | None:
        """The number of the drawn ply that is next; None where a player is to move."""
        since_setup = int(self.state.position.ply) - int(self.state.variant.num_placements)
        return since_setup if 0 <= since_setup < len(self.draws) else None

    def lose(self, side: int, reason: str) -> None:
        """End the game against an entrant."""
        self.rewards = np.where(np.array(self.seats) == side, -1.0, 1.0)
        self.forfeit, self.is_over = reason, True


class HostMatch:
    """The games of a match, and who plays them."""

    def __init__(
        self,
        players: Sequence[Player],
        rules: Rules,
        *,
        games: int,
        boards: int,
        opening: OpeningOptions,
        keys: tuple[jax.Array, jax.Array],
    ) -> None:
        """Open the games as a match of players of this package does.

        Args:
          players: the first and the second.
          rules: two-player rules.
          games: G, an even number.
          boards: B.
          opening: how each pair opens.
          keys: of the openings, and of what the players draw.
        """
        self._players, self._rules = players, rules
        self._boards = min(boards, games)
        self._play_key, self._round = keys[1], 0
        self.games = _open(rules, games, opening, keys[0])

    @property
    def finished(self) -> int:
        """Games that are over."""
        return sum(game.is_over for game in self.games)

    def play_round(self) -> None:
        """Play a ply of each game that is on, up to B of them; those of a pair are taken together,
        so that a match that is stopped has whole pairs."""
        pairs = len(self.games) // 2
        order = sorted(self.games, key=lambda game: game.number % pairs)
        active = [game for game in order if not game.is_over][: self._boards]
        active.sort(key=lambda game: game.number)
        by_side = [
            [game for game in active if game.drawn_ply is None and game.side == side]
            for side in (0, 1)
        ]
        drawn = [game for game in active if game.drawn_ply is not None]
        if drawn:
            self._advance(drawn, self._draw(drawn))
        for side, waiting in enumerate(by_side):
            if waiting:
                self._move(waiting, side)
        for game in active:
            if game.is_over:
                _end_sessions(game)
        self._round += 1

    def result(self) -> MatchResult:
        """The games that are over."""
        games = [game for game in self.games if game.is_over]
        cells = np.asarray(fetch(_territory(_stack([game.state for game in self.games]))))
        is_over = np.array([game.is_over for game in self.games])
        return MatchResult(
            names=tuple(player.name for player in self._players),
            rules=self._rules,
            seats=np.array([game.seats for game in games]),
            rewards=np.array([game.rewards for game in games]),
            cells=cells[is_over],
            opening=np.array([game.number % (len(self.games) // 2) for game in games]),
            games=tuple(tuple(game.actions) for game in games),
            forfeits=tuple(game.forfeit for game in games),
        )

    def _move(self, games: list[_Game], side: int) -> None:
        act = self._players[side].act
        if isinstance(act, ExternalAct):
            games, moves = self._ask(act, games, side)
        else:
            key = jax.random.fold_in(jax.random.fold_in(self._play_key, self._round), side)
            states = _stack([game.state for game in games], self._boards)
            slots = act(self._players[side].variables, states, key)
            moves = np.asarray(fetch(_public_actions(states, slots)))[: len(games)].tolist()
        if games:
            self._advance(games, moves)

    def _draw(self, games: Sequence[_Game]) -> list[int]:
        """The public actions of plies that are drawn."""
        states = _stack([game.state for game in games], self._boards)
        bits = np.zeros(self._boards, np.uint32)
        bits[: len(games)] = [game.draws[game.drawn_ply] for game in games]
        return np.asarray(fetch(_draw(states, bits)))[: len(games)].tolist()

    def _advance(self, games: Sequence[_Game], moves: Sequence[int]) -> None:
        """Play a legal public action in each game."""
        states = _stack([game.state for game in games], self._boards)
        filled = np.array([*moves, *[NO_ACTION] * (self._boards - len(moves))], np.int32)
        after, rewards = fetch(_play(states, filled))
        for place, (game, move) in enumerate(zip(games, moves, strict=True)):
            position = jax.tree.map(lambda x, place=place: x[place], after.position)
            game.state = game.state._replace(position=position)
            game.actions.append(move)
            game.rewards, game.is_over = rewards[place], bool(position.terminated)

    def _ask(
        self, act: ExternalAct, games: Sequence[_Game], side: int
    ) -> tuple[list[_Game], list[int]]:
        """Ask a program for its moves; returns the games where it made a legal one, and these."""
        program = act.program()
        requests = [self._requests(game, program, side) for game in games]
        answers = iter(act.ask(list(itertools.chain(*requests))))
        playing, moves = [], []
        for game, messages in zip(games, requests, strict=True):
            replies = list(itertools.islice(answers, len(messages)))
            failed = next((answer for answer in replies if isinstance(answer, ProgramError)), None)
            move = failed or self._read_move(game, replies[-1])
            if isinstance(move, int):
                playing.append(game)
                moves.append(move)
            else:
                name, ply = self._players[side].name, len(game.actions) + 1
                game.lose(side, f"{name} loses at ply {ply}: {move}")
        return playing, moves

    def _requests(self, game: _Game, program: Program, side: int) -> list[Message]:
        """The messages that bring a program up to date, and the question for its move."""
        known = game.sessions.get(side)
        requests: list[Message] = []
        if known is None or known.program is not program:
            # New to this program: a game that one before it lost has ended.
            known = _Session(program, f"game-{next(_NUMBERS)}", len(game.actions))
            preset = name_of(self._rules)
            requests.append(
                {
                    "type": "start_game_session",
                    "bgsId": known.name,
                    "rules": preset if preset in PRESETS else self._rules.to_dict(),
                    "moves": [self._text(action) for action in game.actions],
                }
            )
        for ply in range(known.plies, len(game.actions)):
            move = self._text(game.actions[ply])
            requests.append(
                {"type": "apply_move", "bgsId": known.name, "expectedPly": ply, "move": move}
            )
        plies = len(game.actions)
        requests.append({"type": "evaluate_position", "bgsId": known.name, "expectedPly": plies})
        game.sessions[side] = dataclasses.replace(known, plies=plies)
        return requests

    def _read_move(self, game: _Game, answer: Any) -> int | str:
        """The public action of an answer, or why it is none."""
        text = answer.get("bestMove")
        if not isinstance(text, str):
            return "its answer has no bestMove"
        try:
            action, player = parse_action(text, grid=self._rules.size)
        except ValueError as error:
            return f"illegal move: {short(error)}"
        snapshot = take_snapshot(game.state)
        reason = illegality(snapshot, action)
        if reason is None and player not in (None, snapshot.player):
            reason = f"{text} is of another colour than the player to move"
        return action if reason is None else f"illegal move: {reason}"

    def _text(self, action: int) -> str:
        return format_action(action, grid=self._rules.size, sides=CANONICAL_SIDES)


def play_on_host(
    match: HostMatch, *, on_progress: Callable[[int], None], should_stop: Callable[[], bool]
) -> MatchResult:
    """Play a match to its end, or until `should_stop` says True after a round."""
    on_progress(match.finished)
    while match.finished < len(match.games) and not should_stop():
        match.play_round()
        on_progress(match.finished)
    return match.result()


def _open(rules: Rules, games: int, how: OpeningOptions, key: jax.Array) -> list[_Game]:
    pairs, variant = games // 2, make_variant(rules)

    @jax.jit
    def open_pairs() -> Any:
        is_own = jnp.ones(pairs, bool)
        return open_games(variant, jnp.arange(pairs), is_own, key, how)

    opened, empty = fetch((open_pairs(), initial_state(rules)))
    begun = []
    for number in range(games):
        pair = number % pairs
        position = jax.tree.map(lambda x, pair=pair: x[pair], opened.position)
        begun.append(
            _Game(
                number=number,
                seats=(0, 1) if number < pairs else (1, 0),
                state=State(empty.variant, position),
                actions=[int(action) for action in opened.actions[pair] if action != NO_ACTION],
                rewards=opened.rewards[pair],
                draws=opened.draws[pair],
                is_over=bool(position.terminated),
            )
        )
    return begun


def _end_sessions(game: _Game) -> None:
    for session in game.sessions.values():
        if not session.program.has_failed:
            session.program.tell([{"type": "end_game_session", "bgsId": session.name}])
    game.sessions.clear()


def _stack(states: Sequence[State], boards: int = 0) -> State:
    """[B]: states, and the first of them again where there are fewer than `boards`."""
    filled = [*states, *[states[0]] * (boards - len(states))]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *filled)


@jax.jit
def _public_actions(states: State, slots: jax.Array) -> jax.Array:
    return jax.vmap(actions_lib.action_of_slot)(states, slots)


@jax.jit
def _draw(states: State, bits: jax.Array) -> jax.Array:
    return _public_actions(states, jax.vmap(actions_lib.draw_slot)(states, bits))


@jax.jit
def _play(states: State, played: jax.Array) -> tuple[State, jax.Array]:
    slots = jax.vmap(actions_lib.slot_of_action)(states, played)
    return jax.vmap(referee.play)(states, slots)


@jax.jit
def _territory(states: State) -> jax.Array:
    return jax.vmap(referee.territory)(states)
