"""The commands other than `run`, on the tiny run; help."""

import itertools
import json
import re

import jax
import pytest

import wallgo_jax
from tests.support.learner import tiny
from tests.support.learner.commands import RULES, command, complaint
from train.__main__ import main
from train.api.players import rules_for
from train.arena.result import wilson_interval
from train.cli.command_line import GROUPS, PROGRAM, program_of
from train.config import read_config
from wallgo_jax.formats import records
from wallgo_jax.game.rules import PRESETS


def test_match_prints_a_table_and_writes_its_games_down(matched, tmp_path):
    path, figures = tmp_path / "new" / "games.jsonl.gz", tmp_path / "match.json"
    said = command(*matched, "--games", "20", "--records", path, "--json", figures)
    assert (said.code, said.err) == (0, "")
    written = list(records.read(path))
    assert len(written) == 20
    points = 0.0
    for record in written:
        game = records.replay(record)
        assert game.is_over and game.rules == tiny.RULES
        points += (game.rewards[record.players.index(matched[1])] + 1) / 2
    assert sum(record.players[0] == matched[1] for record in written) == 10
    found, out = json.loads(figures.read_text()), " ".join(said.out.split())
    assert (found["games"], found["seed"], found["win_rate"]) == (20, 4, points / 20)
    assert "against random" in out and "seed 4 · 0 random opening plies" in out
    won, drawn, lost = map(int, re.search(r"lost │ (\d+), (\d+), (\d+) │", out).groups())
    assert won + drawn / 2 == points and won + drawn + lost == 20
    assert f"win rate │ {points / 20:.2%} │" in out
    low, high = wilson_interval(points / 20, 20)
    assert f"{low:.1%} to {high:.1%}" in out


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


def help_page(words, capsys, monkeypatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(words) == 0
    return capsys.readouterr().out


NAMES = [name for name in PROGRAM.places if name not in GROUPS]
NAMES += [f"{group} {name}" for group in GROUPS for name in program_of(group).places]


@pytest.mark.parametrize("name", NAMES)
def test_help_of_a_command(name, capsys, monkeypatch):
    """It fits 80 columns, has a name for each positional, and ends with examples."""
    page = help_page([*name.split(), "--help"], capsys, monkeypatch)
    assert page.startswith(f"usage: python -m train {name} [-h]")
    assert max(map(len, page.splitlines())) <= 80
    column = page.index("show this help") - page.rindex("\n", 0, page.index("show this help")) - 1
    for line, after in itertools.pairwise(page.splitlines()):
        if line[column - 2 : column] == "  " and line[0] == "│" and not after[1:column].strip():
            word = re.match(r"[^ ,]*,?", after[column:])[0]
            assert len(line[:-1].rstrip()) + 1 + len(word) > 78, line  # The word had no room there.
    assert "{None}" not in page
    assert "(default: None)" not in page
    assert "(default: )" not in page
    examples = page[page.index("\nexamples:\n") :].splitlines()[2:]
    assert examples
    for example, before in zip(examples, ["", *examples], strict=False):
        assert before.endswith("\\") or example.startswith(f"  python -m train {name} ")


def test_help_of_the_program_lists_every_command(capsys, monkeypatch):
    page = help_page(["--help"], capsys, monkeypatch)
    assert max(map(len, page.splitlines())) <= 80
    listed = [line.split()[0] for line in page.splitlines() if line[:2] == "  " and line[2] != " "]
    assert set(PROGRAM.commands) <= {*listed}
    assert "examples:" in page


def test_a_group_lists_its_commands(capsys, monkeypatch):
    page = help_page(["inspect", "--help"], capsys, monkeypatch)
    assert "usage: python -m train inspect COMMAND" in page and "ownership" in page
    assert help_page(["help", "inspect"], capsys, monkeypatch) == page
    assert "describe, attention" in complaint(command("inspect", "nothing"))


def test_versions(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(
        f"wallgo-jax {wallgo_jax.__version__} (jax {jax.__version__}, Python 3."
    )


def test_rules_are_read_alike_everywhere(tmp_path):
    """By commands that play and by configs: JSON, files and a preset's name."""
    path, table = tmp_path / "rules.json", tmp_path / "rules.toml"
    path.write_text(RULES)
    table.write_text('name = "x"\n[rules]\nsize = 3\nstones = 1\norder = [0, 1]\n')
    for given in (RULES, path, table, "{size = 3, stones = 1, order = [0, 1]}"):
        assert read_config(None, ["--rules", str(given)]).rules == tiny.RULES
        assert rules_for(["random"], str(given)) == tiny.RULES
    assert read_config(None, ["--rules", "hkoi"]).rules == PRESETS["hkoi"]
