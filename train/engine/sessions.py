"""Sessions: games that are played on move by move, and searched together where asked together.

    sessions = make_sessions("pretrained:wallzero-4stone", rules)   # compiles what it needs
    name = sessions.open()
    report = await sessions.evaluate(name)                          # or sessions.ask(name).result()
    sessions.apply(name, int(report.action))
    sessions.close(name)

All methods but `evaluate` return at once. A search runs in a thread of its own, so an event loop
stays free; whatever is asked while it runs joins its batch at the next chunk of simulations.
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from train.config.heuristics import HeuristicsConfig
from train.engine.games import SessionGame, begin_game, warm_up
from train.engine.options import EngineOptions
from train.engine.programs import Programs
from train.engine.searcher import EvaluationRequest, Searcher
from train.players.basic import Player
from train.players.registry import check_rules, make_evaluating_player
from train.runtime.errors import UsageError
from train.search.report import SearchReport
from wallgo_jax.game.rules import Rules, name_of
from wallgo_jax.game.state import Sizes, State, sizes_of

_DEFAULTS = EngineOptions()


def make_sessions(
    player: str,
    rules: Rules,
    *,
    options: EngineOptions = _DEFAULTS,
    heuristics: HeuristicsConfig | None = None,
    transfer: bool = False,
    on_compiled: Callable[[int, int], None] = lambda done, total: None,
) -> "Sessions":
    """Make the sessions of a player, compiled and ready.

    Args:
      player: a name of the registry, of a kind that searches or has a network. Its budget is that
        of an answer.
      rules: of sessions that say nothing else, and the shape (size, players, stones) of all.
      options: sizes, and how it searches.
      heuristics: weights of `ethen` and `wjx`.
      transfer: let networks play rules that they were not trained on.
      on_compiled: called by other threads with the number of programs that are compiled, and of
        all that the smallest batches need.

    Raises:
      UsageError: there is no such player, it cannot evaluate positions, or not by these rules; or
        the trees do not fit in the memory.
    """
    searching = make_evaluating_player(player, heuristics=heuristics, transfer=transfer)
    sessions = Sessions(searching, rules, options, on_compiled)
    sessions.compile_rest()
    return sessions


class Sessions:
    """Games of one shape (size, players, stones), which one player searches.

    Methods may be called from any one thread, which is that of the event loop where there is one.
    """

    def __init__(
        self,
        player: Player,
        rules: Rules,
        options: EngineOptions = _DEFAULTS,
        on_compiled: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """Compile what the smallest batches need; the arguments are those of `make_sessions`.

        Raises:
          UsageError: the player cannot play these rules, its own budget is too large, or the trees
            do not fit in the memory.
        """
        check_rules(player, rules)
        self.player, self.rules = player, rules
        self.options = options.for_budget(player.simulations)
        self._games: dict[str, SessionGame] = {}
        self._numbers = itertools.count(1)
        self._programs = Programs(player, rules, self.options, on_compiled)
        warm_up(rules)
        self._searcher = Searcher(self._programs, player, self.options)

    @property
    def sizes(self) -> Sizes:
        """The shape that all sessions have."""
        return sizes_of(self.rules)

    @property
    def names(self) -> tuple[str, ...]:
        """The open sessions, oldest first."""
        return tuple(self._games)

    def open(
        self,
        rules: Rules | None = None,
        *,
        moves: Sequence[str | int] = (),
        position: State | None = None,
        name: str | None = None,
        simulations: int | None = None,
        seconds: float | None = None,
    ) -> str:
        """Open a session; returns its name.

        Args:
          rules: to play; those of the engine by default.
          moves: played at once, in any notation or as public action ids.
          position: to begin from, one board; the start of a game by default.
          name: of the session, which no open one may have; made up by default.
          simulations: of each answer, unless the question says.
          seconds: of each answer, in place of simulations.

        Raises:
          UsageError: what is wrong and what is allowed; no session is opened.
        """
        rules = self.rules if rules is None else rules
        self._check_rules(rules)
        self._check_budget(simulations, seconds)
        if name is None:
            name = next(n for n in map(str, itertools.count(1)) if n not in self._games)
        elif name in self._games:
            raise UsageError(f"session {name!r} is open already; end it first, or choose a name")
        game = begin_game(next(self._numbers), rules, position, moves)
        game.simulations, game.seconds = simulations, seconds
        self._games[name] = game
        return name

    def game(self, session: str, *, expected_ply: int | None = None) -> SessionGame:
        """A session's game, to read.

        Raises:
          UsageError: there is no such session, or it stands at another ply than expected.
        """
        if session not in self._games:
            known = ", ".join(map(repr, itertools.islice(self._games, 8))) or "none"
            raise UsageError(f"session {session!r} is not open; open sessions: {known}")
        game = self._games[session]
        if expected_ply is not None and expected_ply != game.ply:
            raise UsageError(f"expectedPly: {expected_ply}, but the session stands at {game.ply}")
        return game

    def apply(
        self, session: str, move: str | int, *, expected_ply: int | None = None
    ) -> SessionGame:
        """Play a move, in any notation or as a public action id; its subtree is kept.

        Raises:
          UsageError: as `game`, or the move is unreadable or illegal; the session is unchanged.
        """
        game = self.game(session, expected_ply=expected_ply)
        game.play(move)
        return game

    def takeback(self, session: str, ply: int) -> SessionGame:
        """Return to the position after this many plies.

        Raises:
          UsageError: there is no such session, or it has not been there.
        """
        game = self.game(session)
        game.take_back(ply)
        return game

    async def evaluate(self, session: str, **options: Any) -> SearchReport:
        """Search a session's position; the options and errors are those of `ask`."""
        return await asyncio.wrap_future(self.ask(session, **options))

    def ask(
        self,
        session: str,
        *,
        simulations: int | None = None,
        seconds: float | None = None,
        temperature: float = 0.0,
        expected_ply: int | None = None,
    ) -> "Future[SearchReport]":
        """Ask for a search of a session's position as it stands now.

        Args:
          session: its name.
          simulations: new ones; 0 answers by the tree that is kept, by the raw policy where none
            is. By default the session's, else the player's.
          seconds: in place of simulations; counted from when the search begins, which may wait for
            a place in the batch. It ends early once half a tree is searched.
          temperature: 0 plays the strongest move; else the action is drawn with chances
            policy^(1 / temperature) of the search's policy.
          expected_ply: refuses a session that stands at another ply.

        Returns:
          The report to come. One that is cancelled is not searched, or no further.

        Raises:
          UsageError: as `game`, or the budget does not fit in a tree.
        """
        game = self.game(session, expected_ply=expected_ply)
        self._check_budget(simulations, seconds)
        for known in (game, self.player):
            if simulations is None and seconds is None:
                simulations, seconds = known.simulations, known.seconds
        request = EvaluationRequest(
            session=game.number,
            rules=game.rules,
            state=game.state,
            result=game.result,
            slots=tuple(ply.slot for ply in game.plies),
            legal=game.legal,
            simulations=simulations,
            seconds=seconds,
            temperature=temperature,
        )
        return self._searcher.submit(request)

    def close(self, session: str) -> None:
        """End a session; what it is still asked is answered.

        Raises:
          UsageError: there is no such session.
        """
        self._searcher.forget(self.game(session).number)
        del self._games[session]

    def compile_rest(self) -> None:
        """Begin to compile what larger batches need, in the background; until that is done, batches
        are smaller. No other call compiles anything."""
        self._programs.compile_rest()

    @property
    def is_compiling(self) -> bool:
        """Whether larger batches are being compiled."""
        return self._programs.is_compiling

    def wait_for_all_sizes(self) -> None:
        """Wait until batches of all sizes are compiled."""
        self._programs.compile_rest()
        self._programs.wait()

    @property
    def largest_batch(self) -> int:
        """The most positions that were searched together so far."""
        return self._searcher.largest_batch

    def shut_down(self) -> None:
        """End all sessions and the thread that searches; what is still asked is cancelled."""
        self._games.clear()
        self._searcher.shut_down()

    def _check_rules(self, rules: Rules) -> None:
        if sizes_of(rules) != self.sizes:
            plays = self.rules
            raise UsageError(
                f"rules: {rules.players} players with {rules.stones} stones on "
                f"{rules.size}x{rules.size}; this engine plays {plays.players} with {plays.stones} "
                f"on {plays.size}x{plays.size} ({name_of(plays)})"
            )
        check_rules(self.player, rules)

    def _check_budget(self, simulations: int | None, seconds: float | None) -> None:
        most = self.options.nodes - 1
        if simulations is not None and seconds is not None:
            raise UsageError("budget: say simulations or seconds, not both")
        if simulations is not None and not 0 <= simulations <= most:
            raise UsageError(
                f"simulations: {simulations} is not from 0 to {most}, the room of a tree"
            )
