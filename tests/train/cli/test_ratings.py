"""The commands that measure strength print, write and keep results, on the smallest board."""

import functools
import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import MATCH, RULES, command, complaint
from tests.support.learner.saved import save_run
from tests.support.reference.referee import Game
from train import registry
from train.cli.games import ratings
from train.cli.games.match import Match
from train.ratings import pool as pool_lib
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED
from train.solver import exact_player
from train.solver.alphabeta import AlphaBeta
from wallgo_jax.formats import records

ELO = ["--rules", RULES, "--games", "4", "--simulations", "2", "--anchors", "random", "greedy"]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return save_run(tmp_path_factory.mktemp("runs") / "one", seeds={9: 0, 10: 1})


@pytest.fixture(scope="module")
def rated(run, tmp_path_factory):
    """A rated pool of two checkpoints and two anchors: the command's output, and the directory."""
    out = tmp_path_factory.mktemp("elo")
    return command("elo", run, *ELO, "--budget", "40", "--out", out), out


def rows_of(table: str) -> list[str]:
    """The figures of a match."""
    return [line for line in table.splitlines() if line.startswith("│")]


def lines(run: Path) -> list[str]:
    (cache,) = (path for path in run.iterdir() if path.suffix == ".jsonl")
    return cache.read_text().splitlines()


@pytest.mark.slow
def test_elo_rates_checkpoints_and_anchors(rated):
    said, out = rated
    assert said.code == 0
    record = json.loads((out / "elo.json").read_text())
    players = {row["player"]: row for row in record["players"]}
    assert {row["iteration"] for row in players.values()} == {None, 9, 10}
    assert players["random"]["elo"] == pytest.approx(0, abs=1e-9)
    assert all(row["low"] <= row["elo"] <= row["high"] for row in players.values())
    assert sum(row["games"] for row in players.values()) == 2 * 40
    assert (out / "elo.png").read_bytes().startswith(b"\x89PNG")
    for name in players:
        assert name in said.out
    assert " · 2 simulations · " in " ".join(said.out.split())


@pytest.mark.slow
def test_elo_plays_only_what_is_new(rated, run):
    before = lines(run)
    again = command("elo", run, *ELO, "--budget", "40")
    assert again.code == 0
    assert lines(run) == before
    assert command("elo", run, *ELO, "--budget", "48").code == 0
    assert lines(run)[: len(before)] == before
    assert len(lines(run)) == len(before) + 2


@pytest.mark.slow
def test_elo_refuses_what_it_cannot_read(rated, run):
    damaged = run.parent / "damaged.jsonl"
    damaged.write_text("\n".join([*lines(run)[:1], "{"]) + "\n")
    message = complaint(command("elo", run, *ELO, "--budget", "40", "--cache", damaged))
    assert message.startswith(f"{damaged}: line 2: ")


def test_a_plot_of_no_format_is_refused_before_the_games(tmp_path):
    cache, plot = tmp_path / "games.jsonl", tmp_path / "elo.fun"
    said = command("elo", "random", "greedy", *ELO[:4], "--cache", cache, "--png", plot)
    assert complaint(said) == f"{plot}: its ending must be one of .png, .svg, .pdf"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "does not tell positions played, which --axis positions needs"),
        ('{"iteration": 1}\n', "does not tell positions played, which --axis positions needs"),
    ],
)
def test_an_axis_that_metrics_cannot_serve_is_refused_before_the_games(
    run, metrics, reason, tmp_path, monkeypatch
):
    monkeypatch.setattr(ratings, "rate", lambda *_, **__: pytest.fail("games are played"))
    path = tmp_path / "run" / "metrics.jsonl"
    shutil.copytree(run, path.parent)
    if metrics is not None:
        path.write_text(metrics)
    said = command("elo", path.parent, *ELO, "--axis", "positions", "--out", tmp_path / "out")
    assert complaint(said) == f"{path}: {reason}"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("players", "is_told"),
    [
        (["random", "search:{run}@8", "net:{run}"], False),
        (["random", "{run}"], True),
        (["random", "{run}/checkpoints/9"], True),
        (["{run}/checkpoints/9@8"], False),
    ],
)
def test_the_caption_tells_a_budget_that_some_player_has(run, players, is_told):
    named = tuple(player.format(run=run) for player in players)
    assert ratings.Elo(players=named)._is_budget_used() == is_told


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
    asked = []

    def rate(how, entrants, results, rules, **rest):
        asked.append((entrants[-1].player, results._settings))
        raise UsageError("no games here")

    monkeypatch.setattr(ratings, "rate", rate)
    words = [player, *ELO, "--move-seconds", seconds, "--cache", tmp_path / "games.jsonl"]
    assert complaint(command("elo", *words)) == "no games here"
    ((last, settings),) = asked
    assert settings == pool_lib.settings_of(tiny.RULES, opening_plies=2, seed=0) | terms
    if player != "wjx":
        assert last.act.seconds == seconds


def test_a_time_of_moves_that_no_program_can_have_is_refused_by_elo(tmp_path):
    words = [*ELO, "--move-seconds", 0, "--cache", tmp_path / "games.jsonl"]
    said = complaint(command("elo", "external:true", *words))
    assert said == "--move-seconds 0: allowed: above 0, up to 3600"


@pytest.mark.slow
def test_round_robin(tmp_path):
    # In this order and with 20 games, pairs share their programs with matches elsewhere.
    words = ["wjx", "random", "greedy", "--rules", RULES, "--games", "20", "--json"]
    said = command("tournament", *words, tmp_path / "t.json", "--records", tmp_path / "t.jsonl")
    assert said.code == 0
    record = json.loads((tmp_path / "t.json").read_text())
    assert sum(row["points"] for row in record["table"]) == 3 * 20
    assert {row["player"] for row in record["table"]} == {"random", "greedy", "wjx"}
    games = list(records.read(tmp_path / "t.jsonl"))
    assert len(games) == 3 * 20
    for game in games:
        referee = Game(game.rules.to_dict())
        for action in game.actions:
            referee.act(action)
        assert referee.over


@pytest.mark.slow
def test_double_elimination_has_a_winner(tmp_path):
    words = ["wjx", "greedy", "random", "--rules", RULES, "--format", "double-elimination"]
    said = command("tournament", *words, "--json", tmp_path / "t.json")
    assert said.code == 0
    record = json.loads((tmp_path / "t.json").read_text())
    assert sorted(record["places"]) == ["greedy", "random", "wjx"]
    lost = [m["first"] if m["winner"] == m["second"] else m["second"] for m in record["meetings"]]
    champion = record["places"][0]
    assert all(lost.count(name) == 2 for name in record["places"] if name != champion)
    assert lost.count(champion) < 2


@pytest.mark.slow
def test_gate_that_the_games_do_not_decide():
    words = ["wjx", "--against", "random", *MATCH, "--opening-plies", 2, "--sprt", "-10,0"]
    found = command("gate", *words)
    assert (found.code, found.err) == (1, "")
    last = found.out.splitlines()[-1]
    assert last == "gate not passed: wjx is not known to be as strong as random"


@pytest.mark.parametrize(
    ("outcome", "is_stopped", "code", "said"),
    [
        (1, False, 0, "gate passed: wjx is not weaker than random\n"),
        (-1, False, 1, "gate not passed: wjx is weaker than random\n"),
        (1, True, EXIT_INTERRUPTED, "gate passed: wjx is not weaker than random\n"),
    ],
)
def test_gate_tells_by_its_exit_code(outcome, is_stopped, code, said, monkeypatch):
    result = SimpleNamespace(first="wjx", second="random", paired_outcome=np.full(2000, outcome))
    monkeypatch.setattr(Match, "play", lambda self: (result, is_stopped))
    assert command("gate", "wjx", "--sprt", "-100,0") == (code, said, "")


@pytest.mark.parametrize(
    ("player", "against"),
    [
        ("pretrained:wallzero-4stone@3?symmetries=8", "pretrained:wallzero-4stone@3"),
        ("pretrained:wallzero-4stone@0.5s", "pretrained:wallzero-4stone@0.5s"),
        ("net:pretrained:wallzero-4stone", "net:pretrained:wallzero-4stone"),
        ("wjx", "pretrained:wallzero-4stone@64"),
    ],
)
def test_gate_is_held_by_the_shipped_player_with_the_same_budget(player, against, monkeypatch):
    asked = []

    def play(self):
        asked.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(Match, "play", play)
    command("gate", player, "--seed", "3")
    (match,) = asked
    assert (match.first, match.second) == (player, against)
    assert (match.sprt, match.seed, match.opening_plies) == ("-10,0", 3, 4)


@pytest.mark.parametrize(
    ("player", "against"),
    [
        ("wjx", "pretrained:wallzero-4stone@64"),
        ("pretrained:wallzero-4stone-v1@3", "pretrained:wallzero-4stone@3"),
        ("pretrained:wallzero-empty@3", "pretrained:wallzero-empty@3"),
    ],
)
def test_the_shipped_player_is_the_opponent_where_none_is_named(player, against, monkeypatch):
    met = []

    def make_player(name, *args, **kwargs):
        met.append(name)
        if len(met) == 2:
            raise UsageError("enough")

    monkeypatch.setattr(registry, "make_player", make_player)
    assert complaint(command("match", player)) == "enough"
    assert met == [player, against]


@pytest.mark.slow
def test_match_writes_its_figures(tmp_path):
    said = command("match", "wjx", "random", *MATCH, "--json", tmp_path / "match.json")
    assert said.code == 0
    record = json.loads((tmp_path / "match.json").read_text())
    assert record["games"] == record["wins"] + record["draws"] + record["losses"] == 20
    assert record["seed"] == 4
    assert 0 <= record["red_win_rate"] <= 1


def test_match_stops_when_it_is_decided(tmp_path):
    words = ["match", "wjx", "random", "--rules", RULES, "--batch", "20", "--games", "2000"]
    said = command(*words, "--sprt", "0,100", "--json", tmp_path / "match.json")
    record = json.loads((tmp_path / "match.json").read_text())
    assert record["games"] < 2000
    assert record["sprt"]["decision"] == "H1"
    assert record["sprt"]["bounds"] == pytest.approx([-math.log(19), math.log(19)])
    assert record["sprt"]["llr"] >= math.log(19)
    out = " ".join(said.out.split())
    llr = record["sprt"]["llr"]
    assert f"SPRT: log-likelihood ratio {llr:.2f}, bounds -2.94 and 2.94: H1 is accepted" in out
    assert "the first player's lead is 100 Elo points rather than 0" in out
    assert f"written: {tmp_path}/match.json (figures)\n" in said.out


@pytest.mark.slow
def test_export_writes_a_model(run, tmp_path, monkeypatch):
    from train.checkpoints import pretrained

    assert command("export", run, tmp_path / "mine").code == 0
    assert command("export", run / "checkpoints" / "9", tmp_path / "older").code == 0
    cards = [json.loads((tmp_path / n / "card.json").read_text()) for n in ("mine", "older")]
    assert cards[0]["sha256"] != cards[1]["sha256"]
    monkeypatch.setattr(pretrained, "_folder", lambda: tmp_path)
    one = command("match", "pretrained:mine@2", "random", *MATCH)
    other = command("match", f"search:{run}@2", "random", *MATCH)
    assert one.code == other.code == 0
    assert rows_of(one.out) == rows_of(other.out)


@pytest.mark.slow
def test_accuracy_of_the_random_player(tmp_path):
    assert command("accuracy", "random", "--json", tmp_path / "accuracy.json").code == 0
    record = json.loads((tmp_path / "accuracy.json").read_text())
    # The slow solver meets the same number, see test_solver.py.
    assert "69138" in json.dumps(record)


@pytest.mark.slow
def test_a_question_too_large_for_the_solver_is_one_line(
    monkeypatch, failed_programs_are_forgotten
):
    monkeypatch.setattr(exact_player, "AlphaBeta", functools.partial(AlphaBeta, node_limit=5))
    rules = '{"size": 4, "stones": 1, "order": [0, 1], "tie": []}'
    said = command("match", "exact", "random", "--rules", rules, "--games", "2", "--batch", "2")
    assert "nodes" in complaint(said)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["elo", "nowhere"], "player 'nowhere': unknown; known players: "),
        (["tournament", "random", "rnd"], "player 'rnd': unknown"),
        (["tournament", "random"], "tournament: "),
        (["tournament", "random", "random"], "tournament: "),
        (["tournament", "random", "wjx", "--games", "3"], "tournament: games (3)"),
        (["accuracy", "random", "--rules", "wallzero-4stone"], "with 1 or 2 stones each on 3x3"),
        (["accuracy", "nobody"], "player 'nobody': unknown"),
        (["match", "exact", "random"], "exact"),
        (["match", "random", "random", "--config", "nowhere.toml"], "nowhere.toml: no such file"),
    ],
)
def test_usage_errors_are_one_line(words, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert reason in complaint(command(*words))
