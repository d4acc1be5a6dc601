"""The commands other than `run`, on the tiny run; usage errors; help."""

import json
import re

import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import MATCH, Said, command, complaint
from train.__main__ import main
from train.analysis.corridors import read_corridors
from train.arena.result import wilson_interval
from train.cli.commands import CONFIGURED
from wallgo_jax.formats import records


def test_match_prints_a_table(finished):
    name = f"search:{finished[0]}@2"
    said = command("match", name, "random", *MATCH, "--opening-plies", "0")
    assert (said.code, said.err) == (0, "")
    out = " ".join(said.out.split())
    assert "against random" in out
    assert "games │ 20 │" in out
    assert "seed 4 · 0 random opening plies" in out
    won, drawn, lost = map(int, re.search(r"lost │ (\d+), (\d+), (\d+) │", out).groups())
    assert won + drawn + lost == 20
    assert f"win rate │ {(won + drawn / 2) / 20:.2%} │" in out
    low, high = wilson_interval((won + drawn / 2) / 20, 20)
    assert f"{low:.1%} to {high:.1%}" in out
    again = command("match", name, "random", *MATCH, "--opening-plies", "0")
    assert again.out == said.out


def test_match_writes_its_games_down(tmp_path):
    path = tmp_path / "new" / "games.jsonl.gz"
    said = command("match", "random", "greedy", *MATCH, "--records", path)
    assert said.code == 0
    written = list(records.read(path))
    assert len(written) == 20
    won = 0.0
    for record in written:
        game = records.replay(record)
        assert game.is_over
        assert game.rules == tiny.RULES
        seat = record.players.index("random")
        won += (game.rewards[seat] + 1) / 2
    assert sum(record.players[0] == "random" for record in written) == 10
    assert f"win rate │ {won / 20:.2%} │" in " ".join(said.out.split())


def test_describe_prints_and_writes(finished, tmp_path):
    path = tmp_path / "new" / "parts.json"
    said = command("describe", finished[0], "--batch", "4", "--json", path)
    assert (said.code, said.err) == (0, "")
    assert "block 1 R" in said.out
    assert "evaluations/s" in said.out
    figures = json.loads(path.read_text())
    assert figures["parameters"] == sum(part["parameters"] for part in figures["parts"])
    assert "evaluations/s" not in command("describe", tiny.PATH, "--no-measure").out


def test_corridors_are_written(tmp_path):
    path = tmp_path / "new" / "corridors.jsonl"
    said = command("corridors", path, "--count", "4", "--min-distance", "8", "--seed", "3")
    assert said == Said(0, "", "")
    found = read_corridors(path)
    assert found.is_connected.sum() == 2


@pytest.mark.slow
def test_probe_of_a_run(tmp_path):
    words = ["--rules.size", "5", "--network.planes", "B", "--evaluation.opponents", "[]"]
    words += ["--iterations", "1", "--network.blocks", "RT", "--selfplay.plies", "4"]
    assert command("run", tiny.PATH, "--runs", tmp_path, *words).code == 0
    rules = json.dumps({"size": 5, "stones": 1, "order": [0, 1]})
    counts = ["--count-train", "40", "--count-test", "20", "--min-distance", "6", "--seeds", "0"]
    path = tmp_path / "probe.json"
    said = command("probe", tmp_path / "tiny", "--rules", rules, *counts, "--json", path)
    assert (said.code, said.err) == (0, "")
    assert "untrained" in said.out
    assert len(json.loads(path.read_text())["rows"]) == 2


@pytest.mark.slow
def test_three_players_learn_without_matches(tmp_path):
    words = ["--rules.players", "3", "--rules.order", "[0, 1, 2]", "--evaluation.opponents", "[]"]
    words += ["--network.value", "wdl", "--iterations", "2"]
    said = command("run", tiny.PATH, "--runs", tmp_path, *words)
    assert (said.code, said.err) == (0, "")
    rows = (tmp_path / "tiny" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["iteration"] for row in rows] == [1, 2]
    assert not (tmp_path / "tiny" / "evaluation.json").exists()


def test_match_of_a_preset_named_wrong(finished):
    message = complaint(command("match", "random", "random", "--rules", "wallzero"))
    assert message.startswith("rules: unknown preset 'wallzero'; known presets: wallzero-4stone")


SHIPPED = "pretrained:wallzero-4stone"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "command line: Expected one of {run, fit, match, accuracy, elo, tournament, export, "),
        (["describe", "nowhere"], "nowhere: no such run directory, checkpoint or exported folder"),
        (["describe", "nowhere.toml"], "config nowhere.toml: no such file"),
        (["describe", "greedy"], "player 'greedy': has no network; allowed: PATH, net:PATH, "),
        (["describe", "--batch", "0", "--no-measure"], "describe: batch (0) must be at least 1"),
        (["fit"], "fit: --records names no file"),
        (["fit", "--records", "none.jsonl"], "none.jsonl: cannot be read: No such file"),
        (["fit", "--records", "x", "--stepz", "3"], "config: unknown key stepz; known keys: "),
        (
            ["attention", "nowhere", "A1", "--cell", "A1"],
            "Missing from python -m train attention: --out",
        ),
        (
            ["attention", "nowhere", "hkoi", "--cell", "A1", "--out", "a.svg"],
            "nowhere: no such run directory",
        ),
        (["attention", "nowhere", "hkoi", "--cell", "A1", "--out", "a.pdf"], "a.pdf"),
        (
            ["ownership", SHIPPED, "hkoi", "--ply", "0", "--out", "a.svg"],
            "the game has not ended",
        ),
        (["corridors", "a.jsonl", "--count", "3"], "corridors: count is 3, not an even number"),
        (["corridors", "a.jsonl", "--seed", "-1"], "corridors: seed (-1) must be from 0 to"),
        (["corridors", "a.jsonl", "--rules", "playwallgo-3p"], "the rules are for 3 players"),
        (["probe"], "probe: name at least one trained player"),
        (["probe", "random"], "player 'random': has no network; allowed: PATH, net:PATH, "),
        (["export", "random", "model"], "player 'random': has no network; allowed: PATH, net:"),
        (["probe", "nowhere"], "nowhere: no such run directory"),
        (["probe", "nowhere", "--seeds", "-3"], "probe: seed (-3) must be from 0 to"),
        (["match", "random", "random", "--seed", "-1"], "match: seed (-1) must be from 0 to"),
        (["train"], "command line: Expected one of {run, fit, match, "),
        (["run", "--network.blocks", "RX"], "config: network: blocks: 'RX': 'X' at place 2"),
        (["run", "--seed", "--resume"], "command line: --seed has no value"),
        (["run", "missing.toml"], "config missing.toml: no such file"),
        (["run", tiny.PATH, "more.toml"], "command line: 'more.toml' is not an option"),
        (["run", tiny.PATH, "--iteratons", "3"], "unknown key iteratons; did you mean iterations?"),
        (
            ["run", tiny.PATH, "--learner.batch", "big"],
            "learner.batch: Input should be a valid int",
        ),
        (["run", tiny.PATH, "--network.blocks", "2(RT"], "'(' at place 2 is never closed"),
        (["run", tiny.PATH, "--seed"], "command line: --seed has no value"),
        (["match", "random"], "OPPONENT Player that it meets. (required)"),
        (
            ["match", "random", "rnd"],
            "player 'rnd': unknown; did you mean random? Known players: random, greedy,",
        ),
        (["match", "random", "net:nowhere"], "nowhere: no such run directory"),
        (["match", "random", "search:nowhere"], "nowhere: no such run directory"),
        (["match", "random", "search:nowhere@x"], "'x' simulations; allowed: 1 to 100000"),
        (["match", "random", "random", "--sprt", "20"], "sprt: '20' is not ELO0,ELO1"),
        (["match", "random", "pretrained:big"], "pretrained model 'big': unknown; known models"),
        (["export", "nowhere", "model"], "nowhere: no such run directory"),
        (["accuracy", "random", "--rules", '{"size": 5}'], ""),
        (["elo", "nowhere"], "nowhere"),
        (["match", "random", "random", "--games", "many"], "Error parsing --games"),
        (["match", "random", "random", "--games", "3"], "match: games (3) must be an even number"),
        (
            ["match", "random", "random", "--batch", "0"],
            "match: batch (0) must be an even number, at",
        ),
        (["match", "random", "random", "--opening-plies", "-1"], "opening_plies (-1) must not be"),
        (
            ["match", "random", "random", "--gmaes", "2"],
            "Unrecognized options: --gmaes, 2; did you mean --games?",
        ),
        (["match", "random", "random", "greedy"], "command line: Unrecognized options: greedy"),
        (
            ["match", "random", "random", "--rules", "playwallgo-3p"],
            "for 3 players, a match is for",
        ),
        (["match", "random", "random", "--rules", '{"size": 2}'], "rules: size is 2, not a whole"),
        (["match", "random", "random", "--rules", '{"sise": 3}'], "rules: unknown key 'sise'"),
        (["match", "random", "random", "--rules", '{"size": 3'], "line 1"),
    ],
)
def test_usage_errors_are_one_line(words, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = command(*words)
    assert reason in complaint(said)
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [["--help"], *([name, "--help"] for name in (*CONFIGURED, "match", "probe"))]
)
def test_help(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert not caught.value.code
    assert "usage: python -m train" in capsys.readouterr().out
