"""Matches with other programs: the games are played on the host, many at once.

In each round every game makes a ply. A player that is a program is asked for all its games at once,
so that it may search them together; any other acts on all of its own in one batch. A program that
makes an illegal move loses that game. One that ends or is too slow loses the games in which its
answer is missing; another start serves the others.

G games, B of them at a time, P = 2 players.
"""

import dataclasses
import functools
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
_NOBODY = -1
"""Whose turn a drawn ply is."""


def is_external(player: Player) -> bool:
    """Whether a player is another program."""
    return isinstance(player.act, ExternalAct)


def play_on_host(
    players: Sequence[Player],
    rules: Rules,
    *,
    games: int,
    boards: int,
    opening: OpeningOptions,
    key: jax.Array,
    on_progress: Callable[[int], None],
    should_stop: Callable[[], bool],
) -> MatchResult:
    """Play G = `games` games of two players, B = `boards` at a time, opened as those on devices.

    The rest is as in `train.arena.match.play_match`; the match may be stopped after a round.
    """
    open_key, play_key = jax.random.split(key)
    opened, rounds = _open(rules, games, opening, open_key), 0
    match = _Rounds(players, rules, min(boards, games))
    # Games of a pair are taken together, so that a match that is stopped has whole pairs.
    order = sorted(opened, key=lambda game: game.number % (games // 2))
    while True:
        finished = sum(game.is_over for game in opened)
        on_progress(finished)
        if finished == games or should_stop():
            return _result(players, rules, opened)
        active = [game for game in order if not game.is_over][:boards]
        active.sort(key=lambda game: game.number)
        match.play(active, jax.random.fold_in(play_key, rounds))
        rounds += 1


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
    def since_setup(self) -> int:
        """Plies since the last placement, the number of a drawn ply."""
        return int(self.state.position.ply) - int(self.state.variant.num_placements)

    @property
    def turn(self) -> int:
        """The entrant to move; _NOBODY where the ply is drawn."""
        is_drawn = 0 <= self.since_setup < len(self.draws)
        return _NOBODY if is_drawn else self.seats[int(self.state.position.player)]


class _Rounds:
    """Plays rounds of two players, in batches of B boards."""

    def __init__(self, players: Sequence[Player], rules: Rules, boards: int) -> None:
        self._players, self._rules, self._boards = players, rules, boards

    def play(self, active: Sequence[_Game], key: jax.Array) -> None:
        """Play a ply of each of at most B games."""
        turns = [game.turn for game in active]
        for turn in (_NOBODY, 0, 1):
            games = [game for game, its in zip(active, turns, strict=True) if its == turn]
            if games:
                self._move(games, turn, key)
        for game in active:
            if game.is_over:
                _end_sessions(game)

    def _move(self, games: list[_Game], turn: int, key: jax.Array) -> None:
        states, player = self._stack(games), self._players[turn]
        if turn == _NOBODY:
            bits = [game.draws[game.since_setup] for game in games]
            slots = _draw(states, self._fill(bits, 0).astype(np.uint32))
        elif isinstance(player.act, ExternalAct):
            games, moves = self._ask(player.act, games, turn)
            if not games:
                return
            states = self._stack(games)
            slots = _slots(states, self._fill(moves, NO_ACTION).astype(np.int32))
        else:
            slots = player.act(player.variables, states, jax.random.fold_in(key, turn))
        moves, after, rewards = fetch(_play(states, slots))
        for place, game in enumerate(games):
            position = jax.tree.map(lambda x, place=place: x[place], after.position)
            game.state = game.state._replace(position=position)
            game.actions.append(int(moves[place]))
            game.rewards, game.is_over = rewards[place], bool(position.terminated)

    def _stack(self, games: Sequence[_Game]) -> State:
        """[B]: states of games, the first one's again where there are fewer."""
        states = [game.state for game in games]
        return _stack([*states, *[states[0]] * (self._boards - len(states))])

    def _fill(self, numbers: Sequence[int], rest: int) -> np.ndarray:
        return np.array([*numbers, *[rest] * (self._boards - len(numbers))])

    def _ask(
        self, act: ExternalAct, games: Sequence[_Game], turn: int
    ) -> tuple[list[_Game], list[int]]:
        """Ask a program for its moves; returns the games where it made a legal one, and these."""
        program = act.program()
        requests = [self._requests(game, program, turn) for game in games]
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
                name, ply = self._players[turn].name, len(game.actions) + 1
                game.forfeit, game.is_over = f"{name} loses at ply {ply}: {move}", True
                game.rewards = np.where(np.array(game.seats) == turn, -1.0, 1.0)
        return playing, moves

    def _requests(self, game: _Game, program: Program, turn: int) -> list[Message]:
        """The messages that bring a program up to date, and the question for its move."""
        write = functools.partial(format_action, grid=self._rules.size, sides=CANONICAL_SIDES)
        known, moves = game.sessions.get(turn), list(map(write, game.actions))
        requests: list[dict[str, Any]] = []
        if known is None or known.program is not program:
            # New to this program: a game that one before it lost has ended.
            known = _Session(program, f"game-{next(_NUMBERS)}", len(moves))
            preset = name_of(self._rules)
            rules = preset if preset in PRESETS else self._rules.to_dict()
            requests.append({"type": "start_game_session", "rules": rules, "moves": moves})
        for ply in range(known.plies, len(moves)):
            requests.append({"type": "apply_move", "expectedPly": ply, "move": moves[ply]})
        requests.append({"type": "evaluate_position", "expectedPly": len(moves)})
        game.sessions[turn] = dataclasses.replace(known, plies=len(moves))
        return [request | {"bgsId": known.name} for request in requests]

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


def _open(rules: Rules, games: int, how: OpeningOptions, key: jax.Array) -> list[_Game]:
    pairs, variant = games // 2, make_variant(rules)

    @jax.jit
    def open_pairs() -> Any:
        is_own = jnp.ones(pairs, bool)
        return open_games(variant, jnp.arange(pairs), is_own, key, how)

    opened, empty = fetch((open_pairs(), initial_state(rules)))

    def begin(number: int) -> _Game:
        pair = number % pairs
        position = jax.tree.map(lambda x: x[pair], opened.position)
        return _Game(
            number=number,
            seats=(0, 1) if number < pairs else (1, 0),
            state=State(empty.variant, position),
            actions=[int(action) for action in opened.actions[pair] if action != NO_ACTION],
            rewards=opened.rewards[pair],
            draws=opened.draws[pair],
            is_over=bool(position.terminated),
        )

    return [begin(number) for number in range(games)]


def _result(players: Sequence[Player], rules: Rules, games: Sequence[_Game]) -> MatchResult:
    """The games that are over."""
    cells, regions = fetch(_cells(_stack([game.state for game in games])))
    over = [game for game in games if game.is_over]
    numbers = [game.number for game in over]
    return MatchResult(
        names=tuple(player.name for player in players),
        rules=rules,
        seats=np.array([game.seats for game in over]),
        rewards=np.array([game.rewards for game in over]),
        cells=np.asarray(cells)[numbers],
        regions=np.asarray(regions)[numbers],
        opening=np.array(numbers) % (len(games) // 2),
        games=tuple(tuple(game.actions) for game in over),
        forfeits=tuple(game.forfeit for game in over),
    )


def _end_sessions(game: _Game) -> None:
    for session in game.sessions.values():
        if not session.program.has_failed:
            session.program.tell([{"type": "end_game_session", "bgsId": session.name}])
    game.sessions.clear()


def _stack(states: Sequence[State]) -> State:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


@jax.jit
def _draw(states: State, bits: jax.Array) -> jax.Array:
    return jax.vmap(actions_lib.draw_slot)(states, bits)


@jax.jit
def _slots(states: State, played: jax.Array) -> jax.Array:
    return jax.vmap(actions_lib.slot_of_action)(states, played)


@jax.jit
def _play(states: State, slots: jax.Array) -> tuple[jax.Array, State, jax.Array]:
    """The public actions of slots, and what comes after them."""
    played = jax.vmap(actions_lib.action_of_slot)(states, slots)
    return played, *jax.vmap(referee.play)(states, slots)


@jax.jit
def _cells(states: State) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(referee.territory)(states), jax.vmap(referee.largest_region)(states)
