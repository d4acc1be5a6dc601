"""Formats of tournaments: pairings, brackets and the final order.

Players are names. A function plays two of them; it takes the number of pairs of games to play, each
with both colours, and the number of pairs that the two have played before. Formats and
tie-breaks are those of the Hong Kong Olympiad in Informatics, "HKOI AI Competition 2025": heats
ranked by total territory, whose last goes on in the losers' bracket, then double elimination, a
meeting being two games with colours swapped. There a heat is a game each of three; here all in a
heat meet with both colours.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from train.arena.result import MatchResult

MAX_EXTRA_PAIRS = 8
WINNERS, LOSERS, FINAL = "winners", "losers", "final"


class Score(NamedTuple):
    """Games of two players, from the first one's side."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    own: int = 0  # cells at the end of all games together
    other: int = 0

    @property
    def points(self) -> float:
        """A win is 1, a draw ½."""
        return self.wins + self.draws / 2

    def plus(self, more: "Score") -> "Score":
        """Both together."""
        return Score(*(a + b for a, b in zip(self, more, strict=True)))

    def reversed(self) -> "Score":
        """The score from the other side."""
        return Score(self.losses, self.draws, self.wins, self.other, self.own)


def score_of(result: MatchResult) -> Score:
    """The score of a match."""
    own, other = result.territory.sum(axis=0)
    return Score(result.wins, result.draws, result.losses, int(own), int(other))


Play = Callable[[str, str, int, int], Score]
"""(first, second, pairs to play, pairs that the two played before) -> their score."""


class Meeting(NamedTuple):
    """Two players meet."""

    bracket: str  # WINNERS, LOSERS, FINAL or the name of a heat
    round: int  # from 1
    first: str
    second: str
    score: Score
    winner: str | None  # None in a round robin, where meetings may be drawn


class Standing(NamedTuple):
    """A player's place in a table."""

    name: str
    points: float
    score: Score  # of all its games


@dataclasses.dataclass(frozen=True)
class Elimination:
    """A finished double elimination.

    Attributes:
      places: all players, the winner first; those who left in one round in the order of seeds.
      meetings: in the order of play.
      starts_behind: players who began in the losers' bracket.
    """

    places: tuple[str, ...]
    meetings: tuple[Meeting, ...]
    starts_behind: tuple[str, ...]


def counting_pairs(play: Play) -> Play:
    """Wrap `play` with a count of its own of the pairs that each two have played before.

    A tournament of several formats, as heats and an elimination, gives the same wrapped function to
    all of them: else each counts from zero, and a later one plays the games of an earlier one
    again.
    """
    played: Counter[frozenset[str]] = Counter()

    def play_on(first: str, second: str, pairs: int, before: int) -> Score:
        both = frozenset((first, second))
        before = played[both]
        played[both] += pairs
        return play(first, second, pairs, before)

    return play_on


class _Meetings:
    """Plays meetings of one format."""

    def __init__(self, play: Play) -> None:
        self._play = counting_pairs(play)

    def meet(self, first: str, second: str, pairs: int) -> Score:
        """Play this many more pairs of games."""
        return self._play(first, second, pairs, 0)

    def decide(self, bracket: str, round_: int, better: str, worse: str, pairs: int) -> Meeting:
        """Play a meeting that has a winner: the player with more wins, then with more cells.

        Level players play one pair more; after `MAX_EXTRA_PAIRS` more the better seed wins.
        """
        score = self.meet(better, worse, pairs)
        for _ in range(MAX_EXTRA_PAIRS):
            if score.wins != score.losses or score.own != score.other:
                break
            score = score.plus(self.meet(better, worse, 1))
        goes_on = (score.wins, score.own) >= (score.losses, score.other)
        return Meeting(bracket, round_, better, worse, score, better if goes_on else worse)


def check_field(names: Sequence[str], pairs: int) -> None:
    """Refuse fewer than two players, a player named twice and meetings without a game.

    Raises:
      ValueError: in one line, what is wrong.
    """
    if len(names) < 2:
        raise ValueError(f"tournament: {len(names)} players; at least 2 are wanted")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"tournament: player {twice[0]!r} is named twice")
    if pairs < 1:
        raise ValueError("tournament: a meeting is at least 2 games")


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
    names: Sequence[str], play: Play, *, pairs: int = 1, title: str = "round robin"
) -> list[Meeting]:
    """Each player meets each other in `pairs` pairs of games."""
    check_field(names, pairs)
    played = _Meetings(play)
    return [
        Meeting(title, number, first, second, played.meet(first, second, pairs), None)
        for number, meetings in enumerate(rounds_of(names), start=1)
        for first, second in meetings
    ]


def standings(names: Sequence[str], meetings: Sequence[Meeting]) -> list[Standing]:
    """The table: by points, then by lead in territory, then in the order of names."""
    total = dict.fromkeys(names, Score())
    for meeting in meetings:
        total[meeting.first] = total[meeting.first].plus(meeting.score)
        total[meeting.second] = total[meeting.second].plus(meeting.score.reversed())
    rows = [Standing(name, score.points, score) for name, score in total.items()]
    return sorted(rows, key=lambda row: (-row.points, row.score.other - row.score.own))


def score_between(meetings: Sequence[Meeting], name: str, opponent: str) -> Score | None:
    """A player's score against another over all their meetings; None where they did not meet."""
    found = [m.score for m in meetings if (m.first, m.second) == (name, opponent)]
    found += [m.score.reversed() for m in meetings if (m.second, m.first) == (name, opponent)]
    total = Score()
    for score in found:
        total = total.plus(score)
    return total if found else None


def heats(
    names: Sequence[str], play: Play, *, size: int, pairs: int = 1
) -> tuple[list[list[Standing]], list[Meeting]]:
    """Play heats: groups of `size` neighbours, each a round robin ranked by territory.

    The last group may be smaller, but it has at least two players.

    Returns:
      The tables of the groups, and all meetings.
    """
    check_field(names, pairs)
    if size < 2:
        raise ValueError(f"tournament: a heat of {size} has no game")
    groups = [list(names[start : start + size]) for start in range(0, len(names), size)]
    if len(groups) > 1 and len(groups[-1]) == 1:
        alone = groups.pop()
        groups[-1] += alone
    tables, meetings = [], []
    for number, group in enumerate(groups, start=1):
        met = round_robin(group, play, pairs=pairs, title=f"heat {number}")
        tables.append(sorted(standings(group, met), key=lambda row: -row.score.own))
        meetings += met
    return tables, meetings


def seeds_of(tables: Sequence[Sequence[Standing]]) -> tuple[list[str], list[str]]:
    """Split players after heats: seeds of the winners' bracket, and those who start a loss behind.

    Seeds are ordered by rank in their heat, then by territory. The last of each heat starts in the
    losers' bracket.
    """
    ahead = [(rank, row) for table in tables for rank, row in enumerate(table[:-1])]
    ahead.sort(key=lambda entry: (entry[0], -entry[1].score.own))
    behind = sorted((table[-1] for table in tables), key=lambda row: -row.score.own)
    return [row.name for _, row in ahead], [row.name for row in behind]


def double_elimination(
    seeds: Sequence[str], play: Play, *, pairs: int = 1, starts_behind: Sequence[str] = ()
) -> Elimination:
    """Play until all but one have lost twice.

    Args:
      seeds: the winners' bracket, strongest first; if their number is not a power of two, the
        strongest have no opponent in the first round.
      play: plays pairs of games.
      pairs: of games, in a meeting.
      starts_behind: further players, who have one loss already.
    """
    check_field([*seeds, *starts_behind], pairs)
    if not seeds:
        raise ValueError("tournament: nobody starts in the winners' bracket")
    order = [*seeds, *starts_behind]
    state = _Brackets(order.index, _Meetings(play), pairs)
    ahead: list[str | None] = [
        seeds[place - 1] if place <= len(seeds) else None for place in seed_places(len(seeds))
    ]
    behind = list(starts_behind)
    while len(ahead) > 1:
        ahead, dropped = state.winners_round(ahead)
        behind = state.losers_rounds(behind, dropped)
    behind = state.losers_rounds(behind, [])
    (champion,) = ahead
    assert champion is not None
    state.final(champion, behind)
    return Elimination(tuple(reversed(state.left)), tuple(state.meetings), tuple(starts_behind))


def seed_places(count: int) -> list[int]:
    """Seeds, from 1, down the first round of a bracket: the best two can meet in its last round
    only, the best four in the last two only. Numbers beyond `count` stand for nobody."""
    places = [1]
    while len(places) < count:
        total = 2 * len(places) + 1
        places = [seed for place in places for seed in (place, total - place)]
    return places


class _Brackets:
    """The meetings of a double elimination, and who has left so far, worst first."""

    def __init__(self, seed: Callable[[str], int], source: _Meetings, pairs: int) -> None:
        self._seed = seed
        self._source = source
        self._pairs = pairs
        self._rounds: Counter[str] = Counter()
        self.meetings: list[Meeting] = []
        self.left: list[str] = []

    def winners_round(self, ahead: list[str | None]) -> tuple[list[str | None], list[str]]:
        """Play a round; return the winners, and the losers who drop into the losers' bracket."""
        facing = list(zip(ahead[::2], ahead[1::2], strict=True))
        met = self._round(WINNERS, [(a, b) for a, b in facing if a is not None and b is not None])
        goes_on = {name: m.winner for m in met for name in (m.first, m.second)}
        return [goes_on.get(a or b or "", a or b) for a, b in facing], [_loser(m) for m in met]

    def losers_rounds(self, behind: list[str], dropped: list[str]) -> list[str]:
        """Play until those who dropped have met those before them; returns who is left.

        Where nobody dropped, play until one is left.
        """
        while len(behind) > max(1, len(dropped)):
            behind = self._losers_round(behind)
        if dropped and len(behind) + len(dropped) > 1:
            # Those who dropped last from one part of the bracket meet those from the other part.
            met = [pair for two in zip(behind, dropped[::-1], strict=False) for pair in two]
            behind = self._losers_round(met + dropped[::-1][len(behind) :])
            return behind
        return behind + dropped

    def _losers_round(self, names: list[str]) -> list[str]:
        """Neighbours meet; of an odd number the best seed has no opponent."""
        rest = list(names)
        free = [min(rest, key=self._seed)] if len(rest) % 2 else []
        rest = [name for name in rest if name not in free]
        met = self._round(LOSERS, list(zip(rest[::2], rest[1::2], strict=True)))
        self.left += sorted(map(_loser, met), key=self._seed, reverse=True)
        return free + [m.winner for m in met if m.winner is not None]

    def final(self, champion: str, behind: list[str]) -> None:
        """Play the undefeated player against the one with a loss; if that one wins, once more."""
        for challenger in behind:
            (met,) = self._round(FINAL, [(champion, challenger)])
            if met.winner == challenger:
                (met,) = self._round(FINAL, [(champion, challenger)])
            self.left.append(_loser(met))
            champion = str(met.winner)
        self.left.append(champion)

    def _round(self, bracket: str, facing: list[tuple[str, str]]) -> list[Meeting]:
        self._rounds[bracket] += 1
        ranked = [sorted(two, key=self._seed) for two in facing]
        met = [
            self._source.decide(bracket, self._rounds[bracket], better, worse, self._pairs)
            for better, worse in ranked
        ]
        self.meetings += met
        return met


def _loser(meeting: Meeting) -> str:
    return meeting.second if meeting.winner == meeting.first else meeting.first
