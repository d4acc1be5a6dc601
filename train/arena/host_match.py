"""Matches with other programs: the games stand on a device, and the host asks for each ply.

In each tick every board makes a ply. A player that is a program is asked for all its games at once,
so that it may search them together. A program that makes an illegal move loses that game. One that
ends or is too slow loses the games in which its answer is missing; another start serves the others.

G games, N boards, L plies at most, P = 2 players; see `train.arena.match_programs`.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.arena.match_openings import OpeningOptions, Openings, open_games
from train.arena.match_programs import (
    MatchState,
    is_to_move,
    play_slots,
    seatings_of,
    set_up,
    write_down,
)
from train.players.basic import Player
from train.players.external import ExternalAct, Message, Program, ProgramError, short
from train.runtime.devices import broadcast_boards
from train.runtime.host import fetch
from wallgo_jax.formats.rules_text import write_rules
from wallgo_jax.game import actions as actions_lib
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, Variant, make_variant
from wallgo_jax.notation import CANONICAL_SIDES, format_action, parse_action
from wallgo_jax.view.illegality import illegality
from wallgo_jax.view.snapshot import take_snapshot

_NUMBERS = itertools.count(1)
"""Of sessions: a program may play several matches."""
_SEATINGS = seatings_of((1, 1))


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
) -> tuple[MatchState, tuple[str, ...]]:
    """Play G = `games` games of two players, about `boards` at a time, opened as those on devices.

    The rest is as in `train.arena.match.play_match`; the match may be stopped after a tick.

    Returns:
      the games, and of each who lost it by forfeit and why.
    """
    open_key, play_key = jax.random.split(key)
    variant, pairs, boards = make_variant(rules), games // 2, 2 * -(-min(boards, games) // 2)
    opened = jax.jit(open_games, static_argnums=4)(
        variant, jnp.arange(pairs), jnp.ones(pairs, bool), open_key, opening
    )
    match = set_up(opened, _SEATINGS, boards=boards, plies=rules.max_plies)
    programs = _Programs(players, rules, drawn_plies=opened.draws.shape[1])
    ticks = itertools.count()
    while True:
        is_over = fetch(match.last.terminated)
        programs.end_sessions(is_over)
        on_progress(int(is_over.sum()))
        if is_over.all() or should_stop():
            return match, tuple(programs.forfeits.get(game, "") for game in range(games))
        states, turns, *seen = _look(match, variant)
        tick_key = jax.random.fold_in(play_key, next(ticks))
        for entrant, player in enumerate(players):
            if isinstance(player.act, ExternalAct):
                moves, is_lost = programs.ask(entrant, *fetch((states, turns[entrant], *seen)))
                slots = _slots(states, moves)
            else:
                entrant_key = jax.random.fold_in(tick_key, entrant)
                slots = player.act(player.variables, states, entrant_key)
                is_lost = np.zeros(boards, bool)
            match = _play(match, opened, states, slots, turns[entrant], is_lost)


@dataclasses.dataclass(frozen=True)
class _Session:
    """A game as a program knows it."""

    program: Program
    name: str
    plies: int  # that it knows


class _Programs:
    """The players that are programs, and their sessions.

    Attributes:
      forfeits: who lost a game by forfeit and why, by its number.
    """

    def __init__(self, players: Sequence[Player], rules: Rules, *, drawn_plies: int) -> None:
        self._players, self._rules, self._drawn_plies = players, rules, drawn_plies
        self._sessions: dict[tuple[int, int], _Session] = {}  # by game and entrant
        self.forfeits: dict[int, str] = {}

    def ask(
        self, entrant: int, states: State, its_turn: np.ndarray, games: np.ndarray, past: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ask a program for its moves on all boards, unless the next ply is drawn.

        Args:
          entrant: the player.
          states: [N], NumPy arrays.
          its_turn: bool[N].
          games: int[N], on the boards.
          past: int[N, L], public actions so far.

        Returns:
          int32[N] public actions, NO_ACTION where there is none, and bool[N], the games that it
          loses without a legal move.
        """
        since_setup = states.position.ply.astype(int) - states.variant.num_placements
        is_drawn = (0 <= since_setup) & (since_setup < self._drawn_plies)
        boards = np.flatnonzero(its_turn & ~is_drawn)
        moves, is_lost = np.full(len(games), NO_ACTION, np.int32), np.zeros(len(games), bool)
        if not boards.size:
            return moves, is_lost
        act: Any = self._players[entrant].act
        program = act.program()
        requests = [self._requests(program, entrant, int(games[b]), past[b]) for b in boards]
        answers = iter(act.ask(list(itertools.chain(*requests))))
        for board, messages in zip(boards, requests, strict=True):
            replies = list(itertools.islice(answers, len(messages)))
            failed = next((answer for answer in replies if isinstance(answer, ProgramError)), None)
            state = jax.tree.map(lambda x, board=board: x[board], states)
            move = failed or self._read_move(state, replies[-1])
            if isinstance(move, int):
                moves[board] = move
            else:
                name, ply = self._players[entrant].name, int(state.position.ply) + 1
                is_lost[board] = True
                self.forfeits[int(games[board])] = f"{name} loses at ply {ply}: {move}"
        return moves, is_lost

    def _requests(
        self, program: Program, entrant: int, game: int, past: np.ndarray
    ) -> list[Message]:
        """The messages that bring a program up to date, and the question for its move."""
        write = functools.partial(format_action, grid=self._rules.size, sides=CANONICAL_SIDES)
        moves = [write(int(action)) for action in past if action != NO_ACTION]
        known = self._sessions.get((game, entrant))
        requests: list[dict[str, Any]] = []
        if known is None or known.program is not program:
            # New to this program: a game that one before it lost has ended.
            known = _Session(program, f"game-{next(_NUMBERS)}", len(moves))
            rules = write_rules(self._rules)
            requests.append({"type": "start_game_session", "rules": rules, "moves": moves})
        for ply in range(known.plies, len(moves)):
            requests.append({"type": "apply_move", "expectedPly": ply, "move": moves[ply]})
        requests.append({"type": "evaluate_position", "expectedPly": len(moves)})
        self._sessions[game, entrant] = dataclasses.replace(known, plies=len(moves))
        return [request | {"bgsId": known.name} for request in requests]

    def _read_move(self, state: State, answer: Any) -> int | str:
        """The public action of an answer, or why it is none."""
        text = answer.get("bestMove")
        if not isinstance(text, str):
            return "its answer has no bestMove"
        try:
            action, player = parse_action(text, grid=self._rules.size)
        except ValueError as error:
            return f"illegal move: {short(error)}"
        snapshot = take_snapshot(state)
        reason = illegality(snapshot, action)
        if reason is None and player not in (None, snapshot.player):
            reason = f"{text} is of another colour than the player to move"
        return action if reason is None else f"illegal move: {reason}"

    def end_sessions(self, is_over: np.ndarray) -> None:
        """Tell programs which of the games bool[G] are over."""
        for game, entrant in [key for key in self._sessions if is_over[key[0]]]:
            session = self._sessions.pop((game, entrant))
            if not session.program.has_failed:
                session.program.tell([{"type": "end_game_session", "bgsId": session.name}])


@jax.jit
def _look(match: MatchState, variant: Variant) -> tuple[State, jax.Array, jax.Array, jax.Array]:
    """The states [N], bool[2, N] whose turn it is, the games [N] and their actions [N, L]."""
    states = State(broadcast_boards(variant, match.game.shape[0]), match.position)
    turns = jnp.stack([is_to_move(match, _SEATINGS, entrant) for entrant in (0, 1)])
    return states, turns, match.game, match.actions.at[match.game].get(mode="clip")


@jax.jit
def _slots(states: State, moves: jax.Array) -> jax.Array:
    return jax.vmap(actions_lib.slot_of_action)(states, moves)


@jax.jit
def _play(
    match: MatchState,
    openings: Openings,
    states: State,
    slots: jax.Array,
    its_turn: jax.Array,
    is_lost: jax.Array,
) -> MatchState:
    """Play slots [N] where it is a player's turn, who loses some games without a move."""
    boards = jnp.arange(match.game.shape[0])
    is_played = its_turn & ~is_lost
    match = play_slots(match, openings, _SEATINGS, states, boards, slots, is_played)
    left = states.position._replace(terminated=jnp.ones_like(states.position.terminated))
    mover = states.position.player[:, None]
    rewards = jnp.where(jnp.arange(2)[None] == mover, -1.0, 1.0)
    nothing = jnp.full_like(boards, NO_ACTION)
    lost = its_turn & is_lost
    return write_down(match, openings, _SEATINGS, boards, lost, left, rewards, nothing)
