"""The commands other than `run`, on the tiny run; usage errors; help."""

import json
import re
from pathlib import Path

import jax
import pytest

import wallgo_jax
from tests.support.learner import tiny
from tests.support.learner.commands import MATCH, RULES, Said, command, complaint
from train.__main__ import main
from train.analysis.corridors import read_corridors
from train.arena.result import wilson_interval
from train.cli.commands import PROGRAM
from train.config import read_config
from wallgo_jax.cli.parsing import commands_of
from wallgo_jax.formats import records
from wallgo_jax.game.rules import PRESETS


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
    assert said == Said(0, f"written: {path} (4 positions)\n", "")
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
def test_three_players_learn_and_play_matches(tmp_path):
    words = ["--rules.players", "3", "--rules.order", "[0, 1, 2]", "--search.opponents", "maxn"]
    words += ["--network.value", "wdl", "--iterations", "2", "--evaluation.every", "1"]
    words += ["--evaluation.anchors", '["random"]', "--evaluation.opponents", '["random"]']
    words += ["--evaluation.games", "10", "--evaluation.final-games", "10"]
    said = command("run", tiny.PATH, "--runs", tmp_path, *words)
    assert (said.code, said.err) == (0, "")
    rows = [json.loads(r) for r in (tmp_path / "tiny" / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2]
    assert 0 <= rows[0]["win_rate"] == rows[0]["matches"]["random"] <= 1
    (final,) = json.loads((tmp_path / "tiny" / "evaluation.json").read_text())["matches"]
    assert (final["games"], final["second"]) == (12, "2 random")
    assert "against 2 random" in said.out


@pytest.mark.slow
def test_three_players_meet_in_pools(tmp_path):
    rules = json.dumps({"size": 3, "players": 3, "stones": 1, "order": [0, 1, 2]})
    players = ["random", "greedy", "wjx", "ethen"]
    pool = ["elo", "--anchors", *players, "--rules", rules, "--games", "6", "--budget", "24"]
    said = command(*pool, "--out", tmp_path)
    assert said.code == 0 and "simulations" not in said.out
    record = json.loads((tmp_path / "elo.json").read_text())
    assert {row["player"] for row in record["players"]} == set(players)
    assert len((tmp_path / "elo-tables.jsonl").read_text().splitlines()) == 4


def test_match_of_a_preset_named_wrong(finished):
    message = complaint(command("match", "random", "random", "--rules", "wallzero"))
    assert message.startswith("rules: unknown preset 'wallzero'; did you mean wallzero-empty? ")


SHIPPED = "pretrained:wallzero-4stone"
RECIPE = Path(__file__).parents[3] / "configs" / "ablations" / "quickstart.toml"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            [],
            "command line: no command; commands: run, fit, ablate, study, config, match",
        ),
        (["mtch"], "command line: unknown command 'mtch'; did you mean match? Commands: run, fit"),
        (["mtch"], "; see python -m train --help"),
        (
            ["--seed", "1"],
            "command line: unknown command '--seed'; commands: run, fit, ablate, study, config",
        ),
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
        (["ownership", "hkoi", "--ply", "0", "--out", "a.svg"], "the game has not ended"),
        (
            ["ownership", "--ply", "0", "--out", "a.svg"],
            f"ownership: takes a game or position, and before it a player in place of {SHIPPED}",
        ),
        (["corridors", "a.jsonl", "--count", "3"], "corridors: count is 3, not an even number"),
        (["corridors", "a.jsonl", "--seed", "-1"], "corridors: seed (-1) must be from 0 to"),
        (["corridors", "a.jsonl", "--rules", "playwallgo-3p"], "the rules are for 3 players"),
        (["bench", tiny.PATH, "--report", "/dev/null"], "/dev/null/report.md: cannot be written"),
        (["probe", "--json", "/dev/null/x"], "/dev/null/x: cannot be written: "),
        (["describe", "--json", "/dev/null/x"], "/dev/null/x: cannot be written: "),
        (["corridors", "/dev/null/x"], "/dev/null/x: cannot be written: "),
        (["probe", "random"], "player 'random': has no network; allowed: PATH, net:PATH, "),
        (["export", "random", "model"], "player 'random': has no network; allowed: PATH, net:"),
        (["probe", "nowhere"], "nowhere: no such run directory"),
        (["probe", "nowhere", "--seeds", "-3"], "probe: seed (-3) must be from 0 to"),
        (["match", "random", "random", "--seed", "-1"], "match: seed (-1) must be from 0 to"),
        (
            ["train"],
            "command line: unknown command 'train'; commands: run, fit, ablate, study, config, "
            "match",
        ),
        (["run", "--network.blocks", "RX"], "config: network.blocks: 'RX': 'X' at place 2"),
        (["run", "--resume"], "command line: --resume needs the directory of the run, such as"),
        (
            ["run", "--resum", "runs/x"],
            "command line: unknown option --resum; did you mean --resume?",
        ),
        (["run", "--seeed", "1"], "config: unknown key seeed; did you mean seed? Known keys"),
        (["run", "."], "config .: is a directory, not a TOML file"),
        (["config", "."], "config .: is a directory, not a TOML file"),
        (["config", "--only", "serch"], "config: --only serch: no such key or table: name, seed,"),
        (["config", "--only", "search", "--toml"], "config: --toml prints a whole config; leave"),
        (["config", "--learner.learning_rate", "nan"], "config: learner.learning_rate: Input sho"),
        (["run", "missing.toml"], "config missing.toml: no such file"),
        (["run", tiny.PATH, "more.toml"], "command line: 'more.toml' is not an option"),
        (["run", tiny.PATH, "--iteratons", "3"], "unknown key iteratons; did you mean iterations?"),
        (
            ["run", tiny.PATH, "--learner.batch", "big"],
            "learner.batch: Input should be a valid int",
        ),
        (["run", tiny.PATH, "--network.blocks", "2(RT"], "'(' at place 2 is never closed"),
        (["run", tiny.PATH, "--seed"], "command line: --seed has no value"),
        (
            ["config", "--deterministic", "--seed", "3"],
            "command line: --deterministic has no value",
        ),
        (["late", "--out", "l.jsonl"], "late: names no file"),
        (
            ["late", "g.jsonl", "--out", "l.jsonl", "--sample-positions", "5"],
            "late: --sample-positions has no effect without --sample; leave it out",
        ),
        (
            ["elo", "random", "--cache", "g.jsonl", "--budget", "0", "--axis", "positions"],
            "elo: --axis has no effect without --png or --out; leave it out",
        ),
        (
            ["elo", "--rules", "playwallgo-4p", "--cache", "g.jsonl", "--opening-plies", "500"],
            "elo: opening_plies (500) must be below",
        ),
        (
            ["elo", "random", "--cache", "."],
            ".: cannot be read: Is a directory",
        ),
        (
            ["ablate", RECIPE, "--out", "out", "--opening-plies", "2", "500"],
            "ablate: opening_plies (500) must be below",
        ),
        (
            ["export", SHIPPED, "model", "--matches", "."],
            ".: cannot be read: Is a directory",
        ),
        (
            ["match"],
            "PLAYER Player that the result is for; see python -m train match",
        ),
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
        (["match", "random", "random", "--games", "many"], "--games: 'many' is not a whole number"),
        (["match", "random", "random", "--games", "3"], "match: games (3) must be an even number"),
        (
            ["match", "random", "random", "--batch", "0"],
            "match: batch (0) must be an even number, at",
        ),
        (["match", "random", "random", "--opening-plies", "-1"], "opening_plies (-1) must not be"),
        (
            ["match", "random", "random", "--opening-plies", "500"],
            "match: opening_plies (500) must be below",
        ),
        (
            ["match", *["random"] * 3, "--rules", "playwallgo-3p", "--opening-plies", "500"],
            "match: opening_plies (500) must be below",
        ),
        (
            ["elo", "random", "greedy", "--cache", "games.jsonl", "--opening-plies", "500"],
            "elo: opening_plies (500) must be below",
        ),
        (
            ["match", "random", "random", "--gmaes", "2"],
            "Unrecognized options: --gmaes, 2; did you mean --games?; see python -m train match -",
        ),
        (
            ["match", "random", "random", "greedy"],
            "match: 3 players are named, the rules are for 2",
        ),
        (
            ["match", "random", "random", "greedy", "--rules", "playwallgo-4p"],
            "match: 3 players are named, the rules are for 4: name 4, or 2 for one player against",
        ),
        (
            ["match", "random", "greedy", "--rules", "playwallgo-3p", "--sprt", "0,20"],
            "match: --sprt is a test of two players, the rules are for 3; leave it out",
        ),
        (
            ["tournament", "random", "greedy", "--rules", "playwallgo-3p"],
            "tournament: 2 players; at least 3 are wanted",
        ),
        (
            [
                *("tournament", "random", "greedy", "wjx", "--rules", "playwallgo-3p"),
                *("--format", "double-elimination"),
            ],
            "tournament: only a round robin has tables of 3; eliminations and heats are for two",
        ),
        (
            [
                *("elo", "--rules", "playwallgo-4p", "--anchors", "random", "greedy"),
                *("--cache", "games.jsonl"),
            ],
            "elo: a pool of 2 players; the rules are for 4, and each seat needs another player",
        ),
        (
            ["match", "heuristic-search:wjx@4?opponents=friends", "random"],
            "opponents 'friends'; allowed: paranoid, maxn",
        ),
        (
            ["gate", "random", "--against", "greedy", "--rules", "playwallgo-3p"],
            "gate: a test of two players, the rules are for 3",
        ),
        (["gate", "random", "--against", "greedy", "--sprt", ""], "sprt"),
        (["accuracy", "random", "--json", "/proc/none/a.json"], "/proc/none"),
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


def help_page(words, capsys, monkeypatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert not caught.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize("name", commands_of(PROGRAM.commands))
def test_help_of_a_command(name, capsys, monkeypatch):
    """It fits 80 columns, has a name for each positional, and ends with examples."""
    page = help_page([name, "--help"], capsys, monkeypatch)
    assert page.startswith(f"usage: python -m train {name} [-h]")
    assert max(map(len, page.splitlines())) <= 80
    assert "{None}" not in page
    assert "(default: None)" not in page
    assert "(default: )" not in page
    examples = page[page.index("\nexamples:\n") :].splitlines()[2:]
    assert examples
    for example, before in zip(examples, ["", *examples], strict=False):
        assert before.endswith("\\") or example.startswith(f"  python -m train {name} ")


def test_help_names_positionals(capsys, monkeypatch):
    for name, names in (
        ("match", "PLAYER [OPPONENT]"),
        ("accuracy", "[PLAYER ...]"),
        ("probe", "PLAYER ..."),
        ("export", "RUN|PLAYER FOLDER"),
        ("tournament", "PLAYER ..."),
        ("run", "[CONFIG]"),
    ):
        usage = help_page([name, "--help"], capsys, monkeypatch).split("\n\n")[0]
        assert names in " ".join(usage.split())


def test_help_of_the_program_lists_every_command(capsys, monkeypatch):
    page = help_page(["--help"], capsys, monkeypatch)
    assert max(map(len, page.splitlines())) <= 80
    listed = [line.split()[0] for line in page.splitlines() if line[:2] == "  " and line[2] != " "]
    assert set(commands_of(PROGRAM.commands)) <= set(listed)
    assert sorted(commands_of(PROGRAM.commands)) == sorted(
        name for names in PROGRAM.groups.values() for name in names
    )
    assert "examples:" in page


def test_versions(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert not caught.value.code
    assert capsys.readouterr().out.startswith(
        f"wallgo-jax {wallgo_jax.__version__} (jax {jax.__version__}, Python 3."
    )


def test_rules_are_read_alike_everywhere(tmp_path):
    """A preset, JSON and files give one match, and one config."""
    path, table = tmp_path / "rules.json", tmp_path / "rules.toml"
    path.write_text(RULES)
    table.write_text('name = "x"\n[rules]\nsize = 3\nstones = 1\norder = [0, 1]\n')
    said = [
        command("match", "random", "greedy", *MATCH, "--rules", given).out
        for given in (RULES, path, table)
    ]
    assert said[0] == said[1] == said[2]
    for given in (RULES, path, table, "{size = 3, stones = 1, order = [0, 1]}"):
        assert read_config(None, ["--rules", str(given)]).rules == tiny.RULES
    assert read_config(None, ["--rules", "hkoi"]).rules == PRESETS["hkoi"]
