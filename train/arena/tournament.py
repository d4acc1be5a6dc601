"""Formats of tournaments: pairings, brackets and the final order.

Players are names. A function plays some of them, two or as many as the rules have seats; it takes
the number of openings to play, each in every seating. Formats and tie-breaks of two players are
those of the Hong Kong Olympiad in Informatics, "HKOI AI Competition 2025": heats ranked by total
territory, whose last goes on in the losers' bracket, then double elimination, a meeting being two
games with colours swapped. There a heat is a game each of three; here all in a heat meet with both
colours.

P players of a meeting.
"""

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from train.arena.figures import MatchFigures

MAX_EXTRA_PAIRS = 8
WINNERS, LOSERS, FINAL = "winners", "losers", "final"


class Score(NamedTuple):
    """Games from one player's side."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    own: int = 0  # cells at the end of all games together
    other: int = 0  # those of all other players
    region: int = 0  # cells of its largest region at the end of each game together
    places: tuple[int, ...] = ()  # [P] games in which it came first, second and so on

    @property
    def games(self) -> int:
        """Number of games."""
        return self.wins + self.draws + self.losses

    def plus(self, more: "Score") -> "Score":
        """Both together."""
        places = itertools.zip_longest(self.places, more.places, fillvalue=0)
        return Score(*map(operator.add, self[:-1], more[:-1]), places=tuple(map(sum, places)))


def scores_of(result: MatchFigures) -> tuple[Score, ...]:
    """The score of each player of a match."""
    total, numbers = int(result.cells.sum()), range(1, result.rules.players + 1)

    def score(of: MatchFigures) -> Score:
        cells, region = (int(each[of.is_own].sum()) for each in (of.cells, of.regions))
        counts = tuple(int((of.places[of.is_own] == n).sum()) for n in numbers)
        return Score(of.wins, of.draws, of.losses, cells, total - cells, region, counts)

    return tuple(score(result.of(entrant)) for entrant in range(len(result.names)))


PlayPairing = Callable[[tuple[str, ...], int], tuple[Score, ...]]
"""(players, openings to play) -> the score of each."""


class TournamentMatch(NamedTuple):
    """Some players meet."""

    bracket: str  # WINNERS, LOSERS, FINAL or the name of a heat
    round: int  # from 1
    players: tuple[str, ...]
    scores: tuple[Score, ...]
    winner: str | None  # None in a round robin, where meetings may be drawn

    @property
    def loser(self) -> str:
        """The one of two players that did not win."""
        return next(name for name in self.players if name != self.winner)


class StandingsRow(NamedTuple):
    """A player's place in a table."""

    name: str
    points: float  # a win is 1, a draw 1 / P
    score: Score  # of all its games
    seats: int  # P

    @property
    def share(self) -> float:
        """Share of the points, which is its win rate."""
        return self.points / max(self.score.games, 1)


class Elimination(NamedTuple):
    """A finished double elimination."""

    places: tuple[str, ...]  # the winner first; those who left in one round in the order of seeds
    meetings: tuple[TournamentMatch, ...]  # in the order of play
    starts_behind: tuple[str, ...]  # players who began in the losers' bracket


def _decide(
    play: PlayPairing, bracket: str, round_: int, players: tuple[str, ...], pairs: int
) -> TournamentMatch:
    """Play a meeting of two that has a winner: the player with more wins, then with more cells.

    Level players play one pair more; after `MAX_EXTRA_PAIRS` more the better seed wins, who is
    named first.
    """
    scores = play(players, pairs)
    for _ in range(MAX_EXTRA_PAIRS):
        if len({(score.wins, score.own) for score in scores}) > 1:
            break
        scores = tuple(a.plus(b) for a, b in zip(scores, play(players, 1), strict=True))
    one, other = ((score.wins, score.own) for score in scores)
    return TournamentMatch(bracket, round_, players, scores, players[int(other > one)])


def check_entrants(names: Sequence[str], seats: int = 2) -> None:
    """Refuse fewer players than seats and a player named twice.

    Raises:
      ValueError: in one line, what is wrong.
    """
    if len(names) < seats or len({*names}) < len(names):
        raise ValueError(
            f"tournament: at least {seats} different players are needed; there are "
            f"{', '.join(names)}"
        )


def rounds_of(names: Sequence[str]) -> list[list[tuple[str, str]]]:
    """The rounds of a round robin, by the circle method: the first stays, the others go round it.

    Over all rounds each player meets each other once. In a round all play, but one where their
    number is odd.
    """
    seats: list[str | None] = [*names, *([None] if len(names) % 2 else [])]
    rounds = []
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        facing = zip(seats[:half], reversed(seats[half:]), strict=True)
        rounds.append([(a, b) for a, b in facing if a is not None and b is not None])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds


def round_robin(
    names: Sequence[str],
    play: PlayPairing,
    *,
    openings: int = 1,
    seats: int = 2,
    title: str = "round robin",
) -> list[TournamentMatch]:
    """All tables of `seats` different players meet, each in this many openings."""
    tables = [[table] for table in itertools.combinations(names, seats)]
    return [
        TournamentMatch(title, number, players, play(players, openings), None)
        for number, meetings in enumerate(rounds_of(names) if seats == 2 else tables, start=1)
        for players in meetings
    ]


def standings(names: Sequence[str], meetings: Sequence[TournamentMatch]) -> list[StandingsRow]:
    """The table: by points, then by lead in territory, then in the order of names."""
    total, seats = dict.fromkeys(names, Score()), 2
    for meeting in meetings:
        seats = len(meeting.players)
        for name, score in zip(meeting.players, meeting.scores, strict=True):
            total[name] = total[name].plus(score)
    rows = [
        StandingsRow(name, score.wins + score.draws / seats, score, seats)
        for name, score in total.items()
    ]
    return sorted(rows, key=lambda row: (-row.points, row.score.other - row.score.own))


def score_between(meetings: Sequence[TournamentMatch], name: str, opponent: str) -> Score | None:
    """A player's score against another over all their meetings; None where they did not meet."""
    scores = [
        meeting.scores[meeting.players.index(name)]
        for meeting in meetings
        if {name, opponent} == set(meeting.players)
    ]
    return functools.reduce(Score.plus, scores) if scores else None


def heats(
    names: Sequence[str], play: PlayPairing, *, size: int, openings: int = 1
) -> tuple[list[list[StandingsRow]], list[TournamentMatch]]:
    """Play heats: groups of `size` (at least two) neighbours, each a round robin ranked by
    territory.

    The last group may be smaller, but it has at least two players.

    Returns:
      The tables of the groups, and all meetings.
    """
    groups = [list(names[start : start + size]) for start in range(0, len(names), size)]
    if len(groups) > 1 and len(groups[-1]) == 1:
        alone = groups.pop()
        groups[-1] += alone
    tables, meetings = [], []
    for number, group in enumerate(groups, start=1):
        met = round_robin(group, play, openings=openings, title=f"heat {number}")
        tables.append(sorted(standings(group, met), key=lambda row: -row.score.own))
        meetings += met
    return tables, meetings


def seeds_of(tables: Sequence[Sequence[StandingsRow]]) -> tuple[list[str], list[str]]:
    """Split players after heats: seeds of the winners' bracket, and those who start a loss behind.

    Seeds are ordered by rank in their heat, then by territory. The last of each heat starts in the
    losers' bracket.
    """
    ahead = [(rank, row) for table in tables for rank, row in enumerate(table[:-1])]
    ahead.sort(key=lambda entry: (entry[0], -entry[1].score.own))
    behind = sorted((table[-1] for table in tables), key=lambda row: -row.score.own)
    return [row.name for _, row in ahead], [row.name for row in behind]


def double_elimination(
    seeds: Sequence[str], play: PlayPairing, *, openings: int = 1, starts_behind: Sequence[str] = ()
) -> Elimination:
    """Play until all but one have lost twice.

    Args:
      seeds: the winners' bracket, strongest first, at least one; if their number is not a power
        of two, the strongest have no opponent in the first round.
      play: plays openings.
      openings: of a meeting, each with both colours.
      starts_behind: further players, who have one loss already.
    """
    state, behind = _Brackets([*seeds, *starts_behind], play, openings), list(starts_behind)
    ahead: list[str | None] = [
        seeds[place - 1] if place <= len(seeds) else None for place in seed_places(len(seeds))
    ]
    while len(ahead) > 1:
        facing = list(zip(ahead[::2], ahead[1::2], strict=True))
        met = state.meet(WINNERS, [(a, b) for a, b in facing if a is not None and b is not None])
        winners = {name: meeting.winner for meeting in met for name in meeting.players}
        ahead = [winners.get(a or b or "", a or b) for a, b in facing]
        behind = state.losers_rounds(behind, [meeting.loser for meeting in met])
    (champion,) = ahead
    assert champion is not None
    for challenger in state.losers_rounds(behind, []):
        # The undefeated player meets the one with a loss; if that one wins, once more.
        (met,) = state.meet(FINAL, [(champion, challenger)])
        if met.winner == challenger:
            (met,) = state.meet(FINAL, [(champion, challenger)])
        state.left.append(met.loser)
        champion = str(met.winner)
    places = (champion, *reversed(state.left))
    return Elimination(places, tuple(state.meetings), tuple(starts_behind))


def seed_places(count: int) -> list[int]:
    """Seeds, from 1, down the first round of a bracket: the best two can meet in its last round
    only, the best four in the last two only. Numbers beyond `count` are byes."""
    places = [1]
    while len(places) < count:
        total = 2 * len(places) + 1
        places = [seed for place in places for seed in (place, total - place)]
    return places


class _Brackets:
    """The meetings of a double elimination, and who has left so far, worst first."""

    def __init__(self, order: list[str], play: PlayPairing, openings: int) -> None:
        self._seed, self._play, self._openings = order.index, play, openings
        self._rounds: Counter[str] = Counter()
        self.meetings: list[TournamentMatch] = []
        self.left: list[str] = []

    def meet(self, bracket: str, facing: list[tuple[str, str]]) -> list[TournamentMatch]:
        """Play a round of a bracket."""
        self._rounds[bracket] += 1
        number, ranked = self._rounds[bracket], [sorted(two, key=self._seed) for two in facing]
        met = [
            _decide(self._play, bracket, number, tuple(players), self._openings)
            for players in ranked
        ]
        self.meetings += met
        return met

    def losers_rounds(self, behind: list[str], dropped: list[str]) -> list[str]:
        """Play until those who dropped have met those before them; returns who is left.

        Where no player dropped out, play until one is left.
        """
        while len(behind) > max(1, len(dropped)):
            behind = self._losers_round(behind)
        if not dropped or len(behind) + len(dropped) == 1:
            return behind + dropped
        # Those who dropped last from one part of the bracket meet those from the other part.
        met = [name for two in zip(behind, dropped[::-1], strict=False) for name in two]
        return self._losers_round(met + dropped[::-1][len(behind) :])

    def _losers_round(self, names: list[str]) -> list[str]:
        """Neighbours meet; of an odd number the best seed has no opponent."""
        free = [min(names, key=self._seed)] if len(names) % 2 else []
        rest = [name for name in names if name not in free]
        met = self.meet(LOSERS, list(zip(rest[::2], rest[1::2], strict=True)))
        self.left += sorted((m.loser for m in met), key=self._seed, reverse=True)
        return free + [m.winner for m in met if m.winner is not None]
