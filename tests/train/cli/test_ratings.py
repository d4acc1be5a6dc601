"""The commands that measure strength print, write and keep results, on the smallest board."""

import json
import math
import shutil
import signal
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.support.learner import matches, tiny
from tests.support.learner.commands import RULES, command, complaint
from tests.support.learner.saved import save_run
from train.api import players
from train.arena import match as match_lib
from train.arena import meetings as meetings_lib
from train.config.sprt import Sprt
from train.ratings import batches, results_cache
from train.ratings import pool as pool_lib
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED
from train.ui import machine as level_names
from train.ui.machine import Level

ELO = ["--rules", RULES, "--games", "4", "--simulations", "2", "--anchors", "random", "greedy"]
TRIO = json.dumps({"size": 3, "players": 3, "stones": 1, "order": [0, 1, 2]})


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    return save_run(tmp_path_factory.mktemp("runs") / "one", seeds={9: 0, 10: 1})


@pytest.fixture
def run(saved, tmp_path) -> Path:
    """A run of two checkpoints, to be changed."""
    return Path(shutil.copytree(saved, tmp_path / "runs" / "one"))


def lines(run: Path) -> list[str]:
    return (run / pool_lib.CACHE_FILE).read_text().splitlines()


def test_elo_rates_checkpoints_and_anchors(run, plays, tmp_path):
    said = command("elo", run, *ELO, "--budget", "40", "--out", tmp_path)
    assert said.code == 0
    record = json.loads((tmp_path / "elo.json").read_text())
    players = {row["player"]: row for row in record["players"]}
    assert {row["iteration"] for row in players.values()} == {None, 9, 10}
    assert players["random"]["elo"] == pytest.approx(0, abs=1e-9)
    assert all(row["low"] <= row["elo"] <= row["high"] for row in players.values())
    assert sum(row["games"] for row in players.values()) == 2 * 40
    assert (tmp_path / "elo.png").read_bytes().startswith(b"\x89PNG")
    for name in players:
        assert name in said.out
    assert " · 2 simulations · " in " ".join(said.out.split())


def test_stopped_elo_keeps_its_finished_pairings(run, plays):
    plays.most = 2
    said = command("elo", run, *ELO, "--budget", "40")
    assert said.code == EXIT_INTERRUPTED
    assert said.err.startswith("stopped: 8 games are kept, which do not connect all players")
    assert len(lines(run)) == 2
    plays.most = 9
    said = command("elo", run, *ELO, "--budget", "40")
    assert said.code == EXIT_INTERRUPTED
    assert f"kept in {run / pool_lib.CACHE_FILE}; the same command goes on" in said.err
    assert len(lines(run)) == 9


def test_elo_plays_for_ten_minutes_and_says_how_long_it_takes(run, plays, monkeypatch):
    monkeypatch.setattr(batches.time, "monotonic", lambda: 60.0 * len(plays))
    said = command("elo", run, *ELO)
    assert said.code == 0 and len(plays) == len(lines(run)) == 11
    assert said.out.splitlines()[:2] == [
        "about 10 min; other minutes, or a budget, change that",
        "at least the 20 games that connect all players; the first 4 tell how long they take",
    ]
    said = command("elo", run, *ELO, "--minutes", "3")
    assert said.code == 0 and len(lines(run)) == 15
    words = command("elo", run, *ELO, "--budget", "80").out
    assert words.startswith("20 games; the first 4 tell how long they take\n")
    assert len(lines(run)) == 20


def test_three_players_meet_in_pools(plays, tmp_path):
    players = ["random", "greedy", "wjx", "ethen"]
    words = ["--anchors", *players, "--rules", TRIO, "--games", "6", "--budget", "24"]
    said = command("elo", *words, "--out", tmp_path)
    assert said.code == 0 and "simulations" not in said.out
    record = json.loads((tmp_path / "elo.json").read_text())
    assert {row["player"] for row in record["players"]} == set(players)
    assert len((tmp_path / pool_lib.TABLES_FILE).read_text().splitlines()) == 4
    assert {len(names) for names in plays} == {3}


@pytest.mark.parametrize("metrics", [None, "", '{"iteration": 1}\n'])
def test_an_axis_that_metrics_cannot_serve_is_refused_before_the_games(run, metrics, plays):
    path = run / "metrics.jsonl"
    if metrics is not None:
        path.write_text(metrics)
    said = command("elo", run, *ELO, "--axis", "positions", "--out", run / "out")
    assert complaint(said).startswith(f"{path}: ")
    assert plays == [] and not (run / "out").exists()


def test_the_caption_tells_a_budget_that_some_player_has(run, plays, tmp_path):
    words = ["--cache", tmp_path / "games.jsonl", *ELO, "--budget", "24"]
    for player, is_told in ((f"search:{run}@8", False), (f"{run}/checkpoints/9", True)):
        said = command("elo", player, *words)
        assert said.code == 0 and ("simulations" in said.out) == is_told


@pytest.mark.parametrize(
    ("player", "seconds", "terms"),
    [
        ("external:true", 5.0, {"move_seconds": 5.0}),
        ("external:true", 60.0, {}),
        ("wjx", 5.0, {}),
    ],
)
def test_the_time_of_a_programs_moves_is_a_term_of_its_games(
    player, seconds, terms, tmp_path, monkeypatch
):
    """Only where it decides games: those of other pools stay known."""
    cache = Mock(side_effect=UsageError("no games here"))
    monkeypatch.setattr(results_cache, "ResultsCache", cache)
    words = [player, *ELO, "--move-seconds", seconds, "--cache", tmp_path / "games.jsonl"]
    assert complaint(command("elo", *words)) == "no games here"
    settings = pool_lib.settings_of(tiny.RULES, opening_plies=2, seed=0) | terms
    cache.assert_called_once_with(tmp_path / "games.jsonl", settings)


@pytest.mark.parametrize(
    ("outcome", "is_stopped", "code", "said"),
    [
        ([1] * 2000, False, 0, "gate passed: wjx is not weaker than random\n"),
        ([-1] * 2000, False, 1, "gate not passed: wjx is weaker than random\n"),
        ([1, -1], False, 1, "gate not passed: wjx is not known to be as strong as random\n"),
        ([1] * 2000, True, EXIT_INTERRUPTED, "gate passed: wjx is not weaker than random\n"),
    ],
)
def test_a_gate_tells_by_its_exit_code(outcome, is_stopped, code, said, monkeypatch):
    def play(players, rules, how, test, **rest):
        if is_stopped:
            rest["on_progress"](1)
            signal.raise_signal(signal.SIGINT)
        return matches.of_two("wjx", "random", rules, outcome)

    monkeypatch.setattr(match_lib, "play_in_rounds", play)
    found = command("match", "wjx", "random", "--gate", "--sprt", "-100,0")
    assert found.code == code and found.out.endswith(said)


@pytest.mark.parametrize(
    ("player", "against"),
    [
        ("wjx", "pretrained:wallzero-4stone@64"),
        ("pretrained:wallzero-4stone-v1@3", "pretrained:wallzero-4stone@3"),
        ("pretrained:wallzero-empty@3", "pretrained:wallzero-empty@3"),
        ("pretrained:wallzero-4stone@3?symmetries=8", "pretrained:wallzero-4stone@3"),
        ("pretrained:wallzero-4stone@0.5s", "pretrained:wallzero-4stone@0.5s"),
        ("net:pretrained:wallzero-4stone", "net:pretrained:wallzero-4stone"),
    ],
)
def test_the_shipped_player_is_the_opponent_where_none_is_named(player, against, monkeypatch):
    make = Mock(side_effect=UsageError("enough"))
    monkeypatch.setattr(players, "make_players", make)
    assert complaint(command("match", player)) == "enough"
    assert make.call_args.args[0] == [player, against]


@pytest.mark.parametrize(
    ("words", "games", "plies", "test"),
    [
        ((), 400, 2, None),
        (("--gate",), 20_000, 4, (-10, 0)),
        (("--gate", "--games", 400, "--opening-plies", 2), 400, 2, (-10, 0)),
    ],
)
def test_a_gate_has_defaults_of_its_own(words, games, plies, test, monkeypatch):
    play = Mock(side_effect=UsageError("enough"))
    monkeypatch.setattr(match_lib, "play_in_rounds", play)
    assert complaint(command("match", "wjx", "random", *words)) == "enough"
    _, _, how, asked = play.call_args.args
    assert (how.games, how.opening.plies) == (games, plies)
    assert asked == (None if test is None else Sprt(*test))


def test_match_stops_when_it_is_decided(matched, tmp_path):
    words = [*matched, "--games", "2000", "--sprt=-400,-300"]
    said = command(*words, "--json", tmp_path / "match.json")
    record = json.loads((tmp_path / "match.json").read_text())
    test, out = record["sprt"], " ".join(said.out.split())
    assert record["games"] < 2000 and test["decision"] == "H1" and test["llr"] >= math.log(19)
    assert test["bounds"] == pytest.approx([-math.log(19), math.log(19)])
    assert f"log-likelihood ratio {test['llr']:.2f}, bounds -2.94 and 2.94: H1 is accepted" in out
    assert f"written: {tmp_path}/match.json (figures)\n" in said.out


@pytest.mark.slow
def test_accuracy_of_the_random_player(tmp_path):
    assert command("accuracy", "random", "--json", tmp_path / "accuracy.json").code == 0
    record = json.loads((tmp_path / "accuracy.json").read_text())
    # The slow solver meets the same number, see test_solver.py.
    assert "69138" in json.dumps(record)


LEVELS = {"low": Level("low", 1, 2.0), "high": Level("high", 2, 0.0)}


@pytest.fixture
def model(finished, tmp_path, monkeypatch):
    """A tiny model, with two levels to rate and one anchor."""
    run, _ = finished
    folder = tmp_path / "mine"
    assert command("export", run, folder).code == 0
    monkeypatch.setattr(level_names, "LEVELS", LEVELS)
    monkeypatch.setattr(level_names, "ZERO", "random")
    return folder


def test_levels_are_rated_into_the_card(model, plays, tmp_path):
    words = ["levels", model, "--games", 4, "--budget", 16]
    said = command(*words, "--card", "--json", tmp_path / "levels.json")
    assert said.code == 0, said.err
    card = json.loads((model / "card.json").read_text())
    figures = json.loads((tmp_path / "levels.json").read_text())
    rows = {row["player"]: row for row in figures["players"]}
    assert rows["random"]["elo"] == 0
    assert list(card["levels"]) == list(LEVELS)
    for name, level in card["levels"].items():
        assert level == {key: round(rows[name][key]) for key in ("elo", "low", "high")}
    assert card["levels_measured"]["zero"] == "random"
    assert (figures["games"], len(plays)) == (16, 4)
    assert "16 games, 0 of them new" in command(*words).out
    assert len(plays) == 4


# Tournaments, with matches that are over at once.

TWO = ("random", "greedy", "wjx"), ("--rules", RULES, "--games", 4), (8, 12), "meetings"
FAILURE = UsageError("player 'external:b': gave no answer within 60 s")


@pytest.fixture
def meetings(monkeypatch):
    """The names and the pairs before of each match; the first player wins all. A third match raises
    `meetings.failure`, or is stopped by the signal that it names."""

    class Meetings(list):
        failure = None

    found = Meetings()

    def play_meeting(players, rules, options, *, seed, before, on_progress):
        names, games = [player.name for player in players], options.games
        if found.failure and len(found) == 2:
            if isinstance(found.failure, Exception):
                raise found.failure
            signal.raise_signal(found.failure)
            assert options.should_stop()
            games = 2
        found.append((*names, before, games // 2))
        if len(names) > 2:
            return matches.at_table(names, rules, games)
        return matches.of_two(*names, rules, [1] * games)

    monkeypatch.setattr(meetings_lib, "play_meeting", play_meeting)
    return found


def test_an_elimination_plays_no_pair_of_its_heats_again(meetings, tmp_path):
    names = ["random", "greedy", "wjx", "ethen"]
    words = ["--rules", RULES, "--format", "double-elimination", "--heats", 2, "--games", 4]
    assert command("tournament", *names, *words, "--json", tmp_path / "t.json").code == 0
    played = Counter(
        (frozenset(two), before + pair) for *two, before, pairs in meetings for pair in range(pairs)
    )
    assert max(played.values()) == 1
    assert max(Counter(both for both, _ in played).values()) > 2  # two met again
    assert sorted(json.loads((tmp_path / "t.json").read_text())["places"]) == sorted(names)


@pytest.mark.parametrize(
    ("failure", "names", "rules", "games", "key"),
    [
        (FAILURE, *TWO),
        (signal.SIGTERM, *TWO),
        (FAILURE, ("random", "greedy", "wjx", "ethen"), ("--rules", TRIO), (12, 24), "tables"),
    ],
    ids=["failed", "stopped", "failed-at-tables"],
)
def test_finished_meetings_are_kept(meetings, tmp_path, failure, names, rules, games, key):
    meetings.failure = failure
    outputs = ("--json", tmp_path / "t.json", "--records", tmp_path / "t.jsonl")
    said = command("tournament", *names, *rules, *outputs)
    if failure is FAILURE:
        assert complaint(said) == str(FAILURE)
    else:
        assert said.code == EXIT_INTERRUPTED
        assert (
            said.err
            == "stopped: the 2 meetings that are over count; the same command starts anew\n"
        )
    assert f"stopped after {games[0]} of {games[1]} games" in " ".join(said.out.split())
    found = json.loads((tmp_path / "t.json").read_text())
    assert found["is_stopped"] and len(found[key]) == 2
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == games[0]
