"""Sessions: games that are played on move by move, and searched together where asked together.

    sessions = Sessions(player, rules)          # compiles what it needs
    name = sessions.open()
    report = sessions.ask(name).result()        # or await asyncio.wrap_future(sessions.ask(name))
    sessions.apply(name, int(report.action))
    sessions.close(name)

All methods return at once. A search runs in a thread of its own, so an event loop stays free;
whatever is asked while it runs joins its batch at the next chunk of simulations.
"""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from train.engine.options import EngineOptions
from train.engine.programs import Programs
from train.engine.searcher import GamePosition, Search, Searcher, Session, begin_game, play_moves
from train.players.basic import Player
from train.players.registry import check_rules
from train.runtime.errors import UsageError
from train.search.report import SearchReport
from wallgo_jax.game.rules import Rules, name_of
from wallgo_jax.game.state import sizes_of
from wallgo_jax.view.snapshot import take_snapshot

_DEFAULTS = EngineOptions()


class Sessions:
    """Games of one shape (size, players, stones), which one player searches.

    Methods may be called from any one thread, which is that of the event loop where there is one.

    Attributes:
      player: searches; its budget is that of an answer.
      rules: of sessions that say nothing else, and the shape of all.
      options: sizes, and how it searches.
      programs: compiled; larger batches wait for `programs.compile_rest`.
    """

    def __init__(
        self,
        player: Player,
        rules: Rules,
        options: EngineOptions = _DEFAULTS,
        on_compiled: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """Compile what the smallest batches need; no other call compiles anything. Other threads
        call `on_compiled` with the number of programs that are compiled, and of all of those.

        Raises:
          UsageError: the player cannot play these rules, its own budget is too large, or the trees
            do not fit in the memory.
        """
        check_rules(player, rules)
        self.player, self.rules = player, rules
        self.options = options.for_budget(player.simulations)
        self._sessions: dict[str, Session] = {}
        self.programs = Programs(player, rules, self.options, on_compiled)
        start = begin_game(rules)  # Compiles the moves of a game.
        start.play(min(take_snapshot(start.state).legal))
        self._searcher = Searcher(self.programs, player, self.options)

    def open(
        self,
        rules: Rules | None = None,
        *,
        moves: Sequence[str | int] = (),
        position: GamePosition | None = None,
        name: str | None = None,
        simulations: int | None = None,
        seconds: float | None = None,
    ) -> str:
        """Open a session; returns its name.

        Args:
          rules: to play; those of the engine by default.
          moves: played at once, in any notation or as public action ids.
          position: of these rules to begin from; the start of a game by default.
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
            name = next(n for n in map(str, itertools.count(1)) if n not in self._sessions)
        elif name in self._sessions:
            raise UsageError(f"session {name!r} is open already; end it first, or choose a name")
        start = play_moves(begin_game(rules) if position is None else position, moves)
        self._sessions[name] = Session(rules, start, simulations, seconds)
        return name

    def position(self, session: str, *, expected_ply: int | None = None) -> GamePosition:
        """The position of a session.

        Raises:
          UsageError: there is no such session, or it stands at another ply than expected.
        """
        if session not in self._sessions:
            known = ", ".join(map(repr, itertools.islice(self._sessions, 8))) or "none"
            raise UsageError(f"session {session!r} is not open; open sessions: {known}")
        position = self._sessions[session].position
        if expected_ply not in (None, position.ply):
            raise UsageError(
                f"expectedPly: {expected_ply}, but the session stands at {position.ply}"
            )
        return position

    def apply(
        self, session: str, move: str | int, *, expected_ply: int | None = None
    ) -> GamePosition:
        """Play a move, in any notation or as a public action id; its subtree is kept.

        Raises:
          UsageError: as `position`, or the move is unreadable or illegal; nothing is changed.
        """
        after = self.position(session, expected_ply=expected_ply).play(move)
        self._sessions[session].position = after
        return after

    def move_to(self, session: str, position: GamePosition) -> None:
        """Go to another position of the session's game, before or after where it stands; its
        subtree is kept where it is in the tree."""
        self._sessions[session].position = position

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
          UsageError: as `position`, or the budget does not fit in a tree.
        """
        position = self.position(session, expected_ply=expected_ply)
        opened = self._sessions[session]
        self._check_budget(simulations, seconds)
        for default in (opened, self.player):
            if simulations is None and seconds is None:
                simulations, seconds = default.simulations, default.seconds
        return self._searcher.submit(Search(opened, position, simulations, seconds, temperature))

    def close(self, session: str) -> None:
        """End a session; what it is still asked is answered.

        Raises:
          UsageError: there is no such session.
        """
        self.position(session)
        self._searcher.forget(self._sessions.pop(session))

    def shut_down(self) -> None:
        """End all sessions and the thread that searches; what is still asked is cancelled."""
        self._sessions.clear()
        self._searcher.shut_down()

    def _check_rules(self, rules: Rules) -> None:
        if sizes_of(rules) != sizes_of(self.rules):
            plays = self.rules
            raise UsageError(
                f"rules: {rules.players} players with {rules.stones} stones on "
                f"{rules.size}x{rules.size}; this engine plays {plays.players} with {plays.stones} "
                f"on {plays.size}x{plays.size} ({name_of(plays)})"
            )
        check_rules(self.player, rules)

    def _check_budget(self, simulations: int | None, seconds: float | None) -> None:
        most = self.options.nodes - 1
        if None not in (simulations, seconds):
            raise UsageError("budget: say simulations or seconds, not both")
        if simulations is not None and not 0 <= simulations <= most:
            raise UsageError(
                f"budget: {simulations} simulations are not from 0 to {most}, the room of a tree"
            )
