"""Tournament formats: pairings, advancement, and tables worked out by hand."""

import io
from collections import Counter

import numpy as np
import pytest
from rich.console import Console

from train.arena import report
from train.arena.tournament import (
    FINAL,
    LOSERS,
    MAX_EXTRA_PAIRS,
    WINNERS,
    Score,
    double_elimination,
    heats,
    round_robin,
    rounds_of,
    seeds_of,
    standings,
)

SIZES = [2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 17]


def field(count: int) -> list[str]:
    return [f"p{number}" for number in range(1, count + 1)]


def of_two(play):
    """Plays by a function (first, second, openings) -> the first one's score."""

    def of_both(players, openings):
        score = play(*players, openings)
        turned = Score(score.losses, score.draws, score.wins, score.other, score.own, score.region)
        return score, turned

    return of_both


@of_two
def stronger_wins(first: str, second: str, pairs: int) -> Score:
    """The lower number wins every game, 20 cells to 10."""
    won = int(first[1:]) < int(second[1:])
    cells = (40 * pairs, 20 * pairs)
    return Score(2 * pairs, 0, 0, *cells) if won else Score(0, 0, 2 * pairs, *cells[::-1])


def chance(seed: int):
    """Every meeting is a toss."""
    rng = np.random.default_rng(seed)

    @of_two
    def play(first, second, pairs):
        del first, second
        wins = int(rng.integers(0, 2 * pairs + 1))
        return Score(wins, 0, 2 * pairs - wins, *map(int, rng.integers(0, 40, 2)))

    return play


def shown(what) -> str:
    console = Console(width=200, file=io.StringIO())
    with console.capture() as capture:
        console.print(what)
    return capture.get()


@pytest.mark.parametrize("count", SIZES)
def test_rounds_let_each_meet_each_once(count):
    names = field(count)
    rounds = rounds_of(names)
    met = Counter(frozenset(pair) for pairs in rounds for pair in pairs)
    assert set(met.values()) == {1}
    assert len(met) == count * (count - 1) // 2
    assert len(rounds) == count - 1 + count % 2
    for pairs in rounds:
        assert len({name for pair in pairs for name in pair}) == 2 * len(pairs) == count - count % 2


def test_table_of_a_round_robin():
    scores = {
        ("a", "b"): Score(1, 1, 0, 30, 20, 17),
        ("a", "c"): Score(0, 0, 2, 10, 40),
        ("b", "c"): Score(2, 0, 0, 50, 5),
    }

    @of_two
    def play(first, second, pairs):
        assert pairs == 1
        known = scores.get((first, second))
        return known or Score(*(scores[second, first][i] for i in (2, 1, 0, 4, 3, 5)))

    rows = standings("abc", round_robin("abc", play))
    # Points: a 1.5, b 2.5, c 2.
    assert [(row.name, row.points) for row in rows] == [("b", 2.5), ("c", 2.0), ("a", 1.5)]
    assert rows[0].score[:5] == (2, 1, 1, 70, 35)
    text = shown(report.standings_table(rows, round_robin("abc", play), title="t", caption="c"))
    (line,) = [line for line in text.splitlines() if "│ b " in line]
    cells = [cell.strip() for cell in line.strip("│ ").split("│")]
    assert cells == ["1", "b", "2.5", "2, 1, 1", "70 : 35", "4.2", "·", "2", "0.5"]


def test_equal_points_are_parted_by_territory():
    @of_two
    def play(first, second, pairs):
        del pairs
        return Score(1, 0, 1, 30 + (first == "c"), 30 + (second == "c"))

    assert standings("abc", round_robin("abc", play))[0].name == "c"


@pytest.mark.parametrize("behind", [0, 1, 4])
@pytest.mark.parametrize("count", SIZES)
def test_everyone_is_out_after_two_losses(count, behind):
    names = field(count + behind)
    ahead, late = names[:count], names[count:]
    for seed in range(5):
        played = double_elimination(ahead, chance(seed), starts_behind=late)
        losses = Counter(m.loser for m in played.meetings) + Counter(late)
        champion = played.places[0]
        assert losses[champion] <= 1
        assert all(losses[name] == 2 for name in names if name != champion)
        assert sorted(played.places) == sorted(names)
        # A meeting is a loss, and a loss is had from the start by those behind.
        assert len(played.meetings) == losses.total() - behind
        assert sum(m.bracket == FINAL for m in played.meetings) == 1 + losses[champion]


@pytest.mark.parametrize("count", SIZES)
def test_the_stronger_come_first(count):
    played = double_elimination(field(count), stronger_wins)
    assert played.places[:2] == ("p1", "p2")
    assert [m.players[0] for m in played.meetings if m.bracket == FINAL] == ["p1"]


def test_bracket_of_eight():
    played = double_elimination(field(8), stronger_wins)
    rounds = {
        (bracket, number): [
            m.players for m in played.meetings if (m.bracket, m.round) == (bracket, number)
        ]
        for bracket, number in dict.fromkeys((m.bracket, m.round) for m in played.meetings)
    }
    assert rounds[WINNERS, 1] == [("p1", "p8"), ("p4", "p5"), ("p2", "p7"), ("p3", "p6")]
    assert rounds[WINNERS, 2] == [("p1", "p4"), ("p2", "p3")]
    assert rounds[WINNERS, 3] == [("p1", "p2")]
    assert [len(rounds[LOSERS, number]) for number in (1, 2, 3, 4)] == [2, 2, 1, 1]
    assert rounds[LOSERS, 4] == [("p2", "p3")]
    assert played.places[:4] == ("p1", "p2", "p3", "p4")


def test_a_loser_may_come_back_and_win():
    """p2 loses the winners' bracket to p1, and beats it twice in the final."""
    met = []

    @of_two
    def play(first, second, pairs):
        if {first, second} == {"p1", "p2"}:
            won = (first == "p1") == (not met)
            met.append(first)
            return Score(2, 0, 0, 9, 1) if won else Score(0, 0, 2, 1, 9)
        return stronger_wins((first, second), pairs)[0]

    played = double_elimination(field(4), play)
    assert played.places[:2] == ("p2", "p1")
    assert [m.winner for m in played.meetings if m.bracket == FINAL] == ["p2", "p2"]
    assert "p2 2" in shown(report.bracket_tree(played, title="t", caption="c"))


def test_ties_go_to_territory_then_to_a_further_pair_then_to_the_better_seed():
    asked = []

    def meet(*scores):
        asked.clear()

        @of_two
        def play(first, second, pairs):
            asked.append((first, second, pairs))
            return scores[min(len(asked), len(scores)) - 1]

        return double_elimination(["a", "b"], play).meetings[0]

    assert meet(Score(1, 0, 1, 20, 30)).winner == "b"
    assert meet(Score(0, 2, 0, 31, 30)).winner == "a"
    level = Score(1, 0, 1, 30, 30)
    met = meet(level, level, Score(0, 1, 1, 5, 9))
    assert met.winner == "b"
    assert met.scores[0][:5] == (2, 1, 3, 65, 69)
    assert asked[:3] == [("a", "b", 1)] * 3
    met = meet(level)
    assert met.winner == "a"
    assert met.scores[0].games == 2 + 2 * MAX_EXTRA_PAIRS


def test_heats_of_twelve_lead_to_the_published_number_of_meetings():
    tables, met = heats(field(12), stronger_wins, size=3)
    assert [[row.name for row in table] for table in tables][1] == ["p4", "p5", "p6"]
    assert len(met) == 12
    ahead, behind = seeds_of(tables)
    assert ahead == ["p1", "p4", "p7", "p10", "p2", "p5", "p8", "p11"]
    assert behind == ["p3", "p6", "p9", "p12"]
    played = double_elimination(ahead, stronger_wins, starts_behind=behind)
    # "Total 19 games", the second final among them.
    assert len(played.meetings) == 18
    assert {m.round for m in played.meetings if m.bracket == LOSERS} == {1, 2, 3, 4, 5}


def test_heats_that_do_not_come_out_even():
    tables, _ = heats(field(7), stronger_wins, size=3)
    assert [len(table) for table in tables] == [3, 4]
    tables, _ = heats(field(8), stronger_wins, size=3)
    assert [len(table) for table in tables] == [3, 3, 2]


def test_tables_of_three_meet_once_in_every_choice_of_players():
    def play(players, openings):
        assert openings == 2
        first = Score(6, 0, 6, 60, 90, places=(6, 4, 2))
        won = [first, Score(4, 0, 8, 50, 100), Score(2, 0, 10, 40, 110)]
        return tuple(won)

    met = round_robin("abcd", play, openings=2, seats=3)
    assert [meeting.players for meeting in met] == [*map(tuple, ("abc", "abd", "acd", "bcd"))]
    rows = standings("abcd", met)
    assert [row.name for row in rows] == ["a", "b", "c", "d"]
    first = rows[0]
    assert (first.points, first.score.games, first.share) == (18, 36, 0.5)
    assert first.score.places == (18, 12, 6)
    record = report.standing_record(first)
    assert record["places"] == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    text = shown(report.standings_table(rows, met, title="t", caption="c"))
    assert "50% 33% 17%" in text
