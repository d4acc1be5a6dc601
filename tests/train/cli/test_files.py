"""The files that a command names: each has one use."""

import json
import random
from pathlib import Path

import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import RULES, command, complaint, contents
from tests.support.reference.games import random_game
from train.cli.common import options
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record

READ = "{}: is read, so it cannot be written to: name another file"
TWICE = "{}: is named for two outputs: name another file for one of them"


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    """The working directory, with a game, rules, a config, a run and a link to a file to come."""
    monkeypatch.chdir(tmp_path)
    game = random_game(random.Random(0), tiny.RULES.to_dict(), grid=3)
    result = tuple(game.rewards[-1])
    records.write("games.jsonl", [Record(tiny.RULES, tuple(game.actions), result=result)])
    Path("rules.json").write_text(RULES)
    Path("config.toml").write_text(tiny.PATH.read_text())
    Path("link").symlink_to("x")
    Path("run").mkdir()
    Path("run", "metrics.jsonl").write_text(json.dumps({"iteration": 1, "positions": 8}) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("match random greedy --json x --records x", TWICE.format("x")),
        ("match random greedy --json x --records ./x", TWICE.format("x")),
        ("match random greedy --json x --records link", TWICE.format("x")),
        ("match random greedy --rules rules.json --json rules.json", READ.format("rules.json")),
        ("match random greedy --config config.toml --json config.toml", READ.format("config.toml")),
        ("match random greedy --rules playwallgo-3p --json x --records x", TWICE.format("x")),
        ("gate random --against greedy --json x --records x", TWICE.format("x")),
        ("tournament random greedy --json x --records x", TWICE.format("x")),
        (
            "tournament random greedy wjx --rules playwallgo-3p --json x --records x",
            TWICE.format("x"),
        ),
        ("elo random --cache x --json x", TWICE.format("x")),
        ("elo random --cache c --json x.png --png x.png", TWICE.format("x.png")),
        ("elo random --cache c --out o --png o/elo.json", "o/elo.json: its ending must be one of"),
        ("review games.jsonl --records games.jsonl", READ.format("games.jsonl")),
        ("review games.jsonl --json x --records x", TWICE.format("x")),
        ("review games.jsonl --out x.html --json x.html", TWICE.format("x.html")),
        ("calibrate --games games.jsonl --json games.jsonl", READ.format("games.jsonl")),
        ("calibrate --json x.png --png x.png", TWICE.format("x.png")),
        ("puzzles --games games.jsonl --out games.jsonl", READ.format("games.jsonl")),
        ("accuracy random --late games.jsonl --json games.jsonl", READ.format("games.jsonl")),
        ("late games.jsonl --out x --sample x", TWICE.format("x")),
        ("late games.jsonl --out x --sample games.jsonl", READ.format("games.jsonl")),
        # The file to go on with may hold the games: it only grows.
        ("late games.jsonl --out games.jsonl", "games.jsonl, line 1: "),
        ("describe config.toml --json config.toml", READ.format("config.toml")),
        ("attention C1 --rules rules.json --cell A1 --out rules.json", READ.format("rules.json")),
        ("ownership C1 --rules rules.json --ply 0 --out rules.json", READ.format("rules.json")),
        ("corridors rules.json --rules rules.json", READ.format("rules.json")),
        ("probe --rules rules.json --json rules.json", READ.format("rules.json")),
        ("bench config.toml --json config.toml", READ.format("config.toml")),
        ("bench config.toml --what arithmetic --json config.toml", READ.format("config.toml")),
        ("bench config.toml --what strength --json config.toml", READ.format("config.toml")),
        ("bench config.toml --json x.png --plot x.png", TWICE.format("x.png")),
        ("curves run --csv x.png --out x.png", TWICE.format("x.png")),
        ("curves run --csv run/metrics.jsonl", READ.format("run/metrics.jsonl")),
    ],
)
def test_a_file_has_one_use(files, words, said):
    before = contents(files)
    # Of two paths to a file, either may be told.
    assert complaint(command(*words.split())).replace("link", "x").startswith(said)
    assert contents(files) == before


def test_a_device_may_be_named_twice():
    options.check_files(Path("/dev/null"), None, Path("/dev/null"), inputs=["/dev/null", None])


def test_text_that_names_no_file_is_no_input(tmp_path):
    long = '{"size": 3}' + " " * 5000
    options.check_files(tmp_path / "wallzero-4stone", inputs=["wallzero-4stone", long, "\0"])
