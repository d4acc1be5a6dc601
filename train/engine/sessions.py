"""Sessions: games that are played on move by move, and searched together where asked together.

    sessions = make_sessions("pretrained:wallzero-4stone", rules)   # compiles what it needs
    name = sessions.open()
    found = await sessions.evaluate(name)                           # or sessions.ask(name).result()
    sessions.apply(name, found.best_move)
    sessions.close(name)

All methods but `evaluate` return at once. A search runs in a thread of its own, so an event loop
stays free; whatever is asked while it runs joins its batch at the next chunk of simulations.
"""

import asyncio
import dataclasses
import itertools
import math
from collections.abc import Sequence
from concurrent.futures import Future

from train.config.heuristics import HeuristicsConfig
from train.engine.answers import Evaluation, SessionError, Standing
from train.engine.games import SessionGame, warm_up
from train.engine.searcher import Searcher, Task
from train.engine.telling import Question
from train.engine.trees import guide as guide_lib
from train.engine.trees.options import MAX_SECONDS, EngineOptions
from train.engine.trees.programs import Programs
from train.players.basic import Player
from train.players.registry import make_evaluating_player
from train.runtime.errors import UsageError
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
) -> "Sessions":
    """Make the sessions of a player, compiled and ready.

    Args:
      player: a name of the registry, of a kind that searches or has a network. Its budget is that
        of an answer.
      rules: of sessions that say nothing else, and the shape (size, players, stones) of all.
      options: sizes, and how it searches.
      heuristics: weights of `ethen` and `wjx`.
      transfer: let networks play rules that they were not trained on.

    Raises:
      UsageError: there is no such player, it cannot evaluate positions, or not by these rules; or
        the trees do not fit in the memory.
    """
    guide = make_evaluating_player(player, heuristics=heuristics, transfer=transfer)
    sessions = Sessions(guide, rules, options)
    sessions.compile_rest()
    return sessions


@dataclasses.dataclass
class _Session:
    """One session: its game, and the budget of its answers."""

    number: int
    game: SessionGame
    simulations: int | None
    seconds: float | None


class Sessions:
    """Games of one shape (size, players, stones), which one player searches.

    Methods may be called from any one thread, which is that of the event loop where there is one.
    """

    def __init__(self, guide: Player, rules: Rules, options: EngineOptions = _DEFAULTS) -> None:
        """Compile what the smallest batches need.

        Raises:
          UsageError: the guide cannot play these rules, its own budget is too large, or the trees
            do not fit in the memory.
        """
        guide_lib.check_rules(guide, rules)
        try:
            options = options.for_budget(guide.simulations)
        except ValueError as error:
            raise UsageError(f"player {guide.name!r}: {error}") from None
        self.guide, self.rules, self.options = guide, rules, options
        self._sessions: dict[str, _Session] = {}
        self._numbers = itertools.count(1)
        self._programs = Programs(guide, rules, options)
        warm_up(rules)
        self._searcher = Searcher(self._programs, guide.search, options)

    @property
    def sizes(self) -> Sizes:
        """The shape that all sessions have."""
        return sizes_of(self.rules)

    @property
    def names(self) -> tuple[str, ...]:
        """The open sessions, oldest first."""
        return tuple(self._sessions)

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
          SessionError: what is wrong and what is allowed; no session is opened.
        """
        rules = self.rules if rules is None else rules
        self._check_rules(rules)
        self._check_budget(simulations, seconds)
        if name is None:
            name = next(n for n in map(str, itertools.count(1)) if n not in self._sessions)
        elif name in self._sessions:
            raise SessionError(f"session {name!r} is open already; end it first, or choose a name")
        game = SessionGame(rules, position)
        game.play_all(moves)
        self._sessions[name] = _Session(next(self._numbers), game, simulations, seconds)
        return name

    def standing(self, session: str) -> Standing:
        """A session's game as it stands.

        Raises:
          SessionError: there is no such session.
        """
        game = self._of(session).game
        return Standing(
            session=session,
            rules=game.rules,
            state=game.state,
            ply=game.ply,
            player=game.player,
            moves=tuple(game.name_of(ply.action) for ply in game.plies),
            actions=tuple(ply.action for ply in game.plies),
            result=game.rewards,
        )

    def apply(self, session: str, move: str | int, *, expected_ply: int | None = None) -> Standing:
        """Play a move, in any notation or as a public action id; its subtree is kept.

        Raises:
          SessionError: there is no such session, it stands at another ply than expected, or the
            move is unreadable or illegal; the session is unchanged.
        """
        own = self._of(session)
        _check_ply(own, expected_ply)
        own.game.play(move)
        return self.standing(session)

    def takeback(self, session: str, ply: int) -> Standing:
        """Return to the position after so many plies.

        Raises:
          SessionError: there is no such session, or it has not been there.
        """
        self._of(session).game.take_back(ply)
        return self.standing(session)

    async def evaluate(
        self,
        session: str,
        *,
        simulations: int | None = None,
        seconds: float | None = None,
        details: bool = False,
        temperature: float = 0.0,
        expected_ply: int | None = None,
    ) -> Evaluation:
        """Search a session's position; the arguments and errors are those of `ask`."""
        asked = self.ask(
            session,
            simulations=simulations,
            seconds=seconds,
            details=details,
            temperature=temperature,
            expected_ply=expected_ply,
        )
        return await asyncio.wrap_future(asked)

    def ask(
        self,
        session: str,
        *,
        simulations: int | None = None,
        seconds: float | None = None,
        details: bool = False,
        temperature: float = 0.0,
        expected_ply: int | None = None,
    ) -> "Future[Evaluation]":
        """Ask for a search of a session's position as it stands now.

        Args:
          session: its name.
          simulations: new ones; 0 answers by the tree that is kept, by the raw policy where none
            is. By default the session's, else the player's.
          seconds: in place of simulations; counted from when the search begins, which may wait for
            a place in the batch. It ends early once half a tree is searched.
          details: fill the details of the evaluation.
          temperature: 0 plays the strongest move; else the move is drawn with chances
            policy^(1 / temperature) of the search's policy.
          expected_ply: refuses a session that stands at another ply.

        Returns:
          The evaluation to come. One that is cancelled is not searched, or no further.

        Raises:
          SessionError: there is no such session, it stands at another ply than expected, or the
            budget or temperature is out of range.
        """
        own = self._of(session)
        _check_ply(own, expected_ply)
        self._check_budget(simulations, seconds)
        if not 0 <= temperature <= 100:
            raise SessionError(f"temperature: {temperature} is not from 0 to 100")
        if simulations is None and seconds is None:
            simulations, seconds = self._budget_of(own)
        game = own.game
        question = Question(
            session,
            game.state,
            game.ply,
            game.rewards,
            temperature,
            details,
            self.guide.calibration,
        )
        task = Task(
            session=own.number,
            question=question,
            slots=tuple(ply.slot for ply in game.plies),
            legal=game.legal,
            simulations=simulations,
            seconds=seconds,
        )
        return self._searcher.submit(task)

    def close(self, session: str) -> None:
        """End a session; what it is still asked is answered.

        Raises:
          SessionError: there is no such session.
        """
        number = self._of(session).number
        del self._sessions[session]
        self._searcher.forget(number)

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
        self._sessions.clear()
        self._searcher.shut_down()

    def _of(self, session: str) -> _Session:
        if session not in self._sessions:
            known = ", ".join(itertools.islice(self._sessions, 8)) or "none"
            raise SessionError(f"session {session!r} is not open; open sessions: {known}")
        return self._sessions[session]

    def _budget_of(self, own: _Session) -> tuple[int | None, float | None]:
        if own.simulations is not None or own.seconds is not None:
            return own.simulations, own.seconds
        return self.guide.simulations, self.guide.seconds

    def _check_rules(self, rules: Rules) -> None:
        if sizes_of(rules) != self.sizes:
            own = self.rules
            raise SessionError(
                f"rules: {rules.players} players with {rules.stones} stones on "
                f"{rules.size}x{rules.size}; this engine plays {own.players} with {own.stones} on "
                f"{own.size}x{own.size} ({name_of(own)})"
            )
        try:
            guide_lib.check_rules(self.guide, rules)
        except UsageError as error:
            raise SessionError(f"rules: {error}") from None

    def _check_budget(self, simulations: int | None, seconds: float | None) -> None:
        most = self.options.nodes - 1
        if simulations is not None and seconds is not None:
            raise SessionError("budget: say simulations or seconds, not both")
        if simulations is not None and not 0 <= simulations <= most:
            raise SessionError(
                f"simulations: {simulations} is not from 0 to {most}, the room of a tree"
            )
        if seconds is not None and not (math.isfinite(seconds) and 0 < seconds <= MAX_SECONDS):
            raise SessionError(f"seconds: {seconds} is not above 0, up to {MAX_SECONDS:g}")


def _check_ply(own: _Session, expected: int | None) -> None:
    if expected is not None and expected != own.game.ply:
        raise SessionError(f"expectedPly: {expected}, but the session stands at ply {own.game.ply}")
