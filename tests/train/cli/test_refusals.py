"""What the command line refuses: a table of commands, each with a word of the complaint.

Nothing is written or changed by any of them, and each exits with 2.
"""

import ast
import json
import random
import re
import shlex
import shutil
from pathlib import Path
from unittest.mock import Mock

import jax
import pytest

import train
from tests.support.learner import tiny
from tests.support.learner.commands import CONFIG, RULES, command, complaint, contents
from tests.support.reference.games import random_game
from train.arena import match
from train.cli import options
from wallgo_jax.formats import records
from wallgo_jax.formats.option_names import argument, in_options
from wallgo_jax.formats.records import Record

RECIPE = Path(__file__).parents[3] / "configs" / "ablations" / "quickstart.toml"
SHIPPED = "pretrained:wallzero-4stone"
ATTENTION = "attention nowhere hkoi --cell A1"
OWNERSHIP = "ownership --ply 0 --out a.svg"
CALIBRATE = "calibrate heuristic-search:wjx@4"
TRIO = "--rules playwallgo-3p"
TABLE = f"tournament random greedy wjx {TRIO}"

REFUSED = [
    # Commands and options.
    ("", "command"),
    ("mtch", "match?"),
    ("mtch", "--help"),
    ("--seed 1", "--seed"),
    ("match", "PLAYER"),
    ("match random random --gmaes 2", "--games"),
    ("match random random --games many", "many"),
    ("run --resume", "--resume"),
    ("run config.toml --resume", "--resume"),
    ("run --resum runs/x", "--resume?"),
    ("run config.toml more.toml", "more.toml"),
    ("run config.toml --iteratons 3", "iterations?"),
    ("run --lr 0.1", "--learner.learning_rate?"),
    ("config --learning-rate 0.1", "--learner.learning_rate?"),
    ("config --serch.simulations 3", "--search.simulations?"),
    ("run config.toml --seed", "--seed"),
    ("config --deterministic --seed 3", "--deterministic"),
    ("config --only serch", "serch"),
    ("config --only search --toml", "--toml"),
    ("elo random --cache x --axis positions", "--axis"),
    ("prove games.jsonl --late x --sample-positions 5", "--sample-positions"),
    (f"{CALIBRATE} --games x --own-simulations 2", "no effect"),
    ("check-puzzles x --games y", "--games"),
    ("check-puzzles x --count 3", "--count"),
    ("puzzles --out x --games y --own-games 3", "--own-games"),
    ("play --level strong", "--level"),
    (
        "match random greedy --openings x --players-place",
        "--openings and --players-place cannot be used together",
    ),
    (f"export {SHIPPED}", "a page after --web"),
    ("bench --what learn --against pgx", "bench: --against pgx is for the part env"),
    # Configs.
    ("run --network.blocks RX", "network: Value error, blocks"),
    ("run config.toml --learner.batch big", "learner.batch"),
    ("config --learner.learning_rate nan", "learner.learning_rate"),
    ("config --learner.learning_rate 1e-46", "learner.learning_rate"),
    ("config --seed true", "seed"),
    ("config --name ' '", "directory"),
    ("fit --records x --stepz 3", "stepz"),
    ("run missing.toml", "missing.toml"),
    ("run .", "directory"),
    ("match random random --config nowhere.toml", "nowhere.toml"),
    # Players.
    ("match random rnd", "random?"),
    ("match random search:nowhere", "nowhere"),
    ("match random search:nowhere@x", "'x'"),
    ("match random pretrained:big", "pretrained"),
    ("match exact random", "exact"),
    ("match 'heuristic-search:wjx@4?opponents=friends' random", "friends"),
    ("tournament random", "tournament"),
    ("describe greedy", "greedy"),
    ("export random model", "random"),
    ("export nowhere model", "nowhere"),
    (f"{ATTENTION} --out a.svg", "nowhere"),
    ("levels random", "network"),
    (f"levels {SHIPPED}@8", "simulations"),
    (f"levels net:{SHIPPED}", "simulations"),
    (f"{CALIBRATE} --card", "has no network"),
    ("review C3 --player wjx", "search"),
    ("review C3 --player heuristic-search:wjx@1s", "seconds"),
    ("play --player heuristic-search:wjx@512", "without simulations"),
    # Rules.
    ("match random random --rules wallzero", "wallzero-empty?"),
    ("match random random --rules '{\"size\": 3'", "line"),
    ("match random random greedy --rules playwallgo-4p", "4"),
    (f"match random greedy {TRIO} --sprt 0,20", "sprt"),
    (f"{TABLE} --format double-elimination", "round"),
    (f"tournament random wjx greedy external:true {TRIO}", "two"),
    (f"tournament wjx heuristic-search:wjx heuristic-search:wjx@64 {TRIO}", "3 different players"),
    ("elo --rules playwallgo-4p --anchors random greedy --cache x", "4"),
    (f"{CALIBRATE} {TRIO}", "two players"),
    # Numbers.
    ("match random random --batch 0", "batch"),
    ("match random random --opening-plies -1", "--opening-plies"),
    ("match random random --opening-plies 500", "500"),
    (f"{CALIBRATE} --positions 1", "positions"),
    (f"{CALIBRATE} --opening-plies -1", "--opening-plies"),
    ("puzzles --out x --deep 8", "deep"),
    ("puzzles --out x --wins 0.5", "others below wins"),
    ("puzzles --out x --count 0", "count"),
    ("review C3 --game 0", "--game"),
    ("review C3 --siblings 0", "--siblings"),
    ("match random random --sprt 20", "sprt"),
    ("match random random --sprt x,20", "sprt: elo0: Input should be a valid number"),
    ("elo random --cache x --checkpoints 1", "--checkpoints: Input should be 0, or 2 or more (got"),
    ("puzzles --out x --level 2", "puzzles: level: Input should be less than 0.5"),
    ("play --port 65536", "play: --port: "),
    ("match random greedy --gate --sprt ''", "sprt"),
    ("tournament random wjx --games 0", "games"),
    ("elo random greedy --cache x --opening-plies 500", "500"),
    ("elo external:true --anchors random --cache x --move-seconds 0", "--move-seconds"),
    (f"ablation {shlex.quote(str(RECIPE))} --out out --opening-plies 2 500", "500"),
    (f"levels {SHIPPED} --games 0", "games"),
    (f"levels {SHIPPED} --budget 0", "budget"),
    ("describe --batch 0 --no-measure", "batch"),
    # Games to read.
    ("fit", "--records"),
    ("prove --late x", "prove: games: "),
    ("fit --records none.jsonl", "none.jsonl"),
    ("check-puzzles nowhere", "nowhere"),
    ("review nowhere.jsonl", "nowhere.jsonl"),
    ("review wallzero-4stone", "no move"),
    ("review 'B6->B6'", "B6->B6"),
    ("accuracy --late x", "x"),
    # What it goes on with may hold no game.
    ("prove games.jsonl --late games.jsonl", "line"),
    (f"export {SHIPPED} model --matches .", "directory"),
    ("elo random --cache .", "directory"),
    ("elo random greedy --cache rules.json", "another file with --cache"),
    (f"ownership {SHIPPED} hkoi --ply 0 --out a.svg", "ended"),
    (OWNERSHIP.replace("ownership", "ownership hkoi"), "ended"),
    (OWNERSHIP, SHIPPED),
    # Files to write.
    ("attention nowhere A1 --cell A1", "--out"),
    (f"{ATTENTION} --out a.pdf", "a.pdf"),
    ("review C3 --out x.svg", ".html"),
    ("elo random --cache x --plot elo.fun", "elo.fun"),
    ("match games.jsonl --plot x.png", "--plot"),
    ("accuracy random wjx --late games.jsonl --plot x.png", "--plot"),
    ("bench config.toml --report /dev/null", "/dev/null/report.md"),
    ("accuracy random --json /proc/none/a.json", "/proc/none"),
    ("match random greedy --records .", "directory"),
    ("tournament random greedy --records rules.json/x", "rules.json"),
    ("run config.toml --runs rules.json", "rules.json"),
    ("run config.toml --evaluation.opponents '[\"grandmaster\"]'", "grandmaster"),
    # A file has one use: what is read is not written to, nor is anything written to twice.
    ("match random greedy --json x --records link", "two"),
    ("match random greedy --rules rules.json --json rules.json", "read"),
    ("match random greedy --config config.toml --json config.toml", "read"),
    ("tournament random greedy --json x --records x", "two"),
    ("elo random --cache x --json x", "two"),
    ("elo random --cache c --json x.png --plot x.png", "two"),
    ("elo random --cache c --out o --plot o/elo.json", "ending"),
    ("review games.jsonl --records games.jsonl", "read"),
    ("review games.jsonl --json x --records x", "two"),
    ("review games.jsonl --out x.html --json x.html", "two"),
    ("calibrate --games games.jsonl --json games.jsonl", "read"),
    ("calibrate --json x.png --plot x.png", "two"),
    ("puzzles --games games.jsonl --out games.jsonl", "read"),
    ("accuracy random --late games.jsonl --json games.jsonl", "read"),
    ("prove games.jsonl --late x --sample x", "two"),
    ("prove games.jsonl --late x --sample games.jsonl", "read"),
    ("describe config.toml --json config.toml", "read"),
    ("attention C1 --rules rules.json --cell A1 --out rules.json", "read"),
    ("ownership C1 --rules rules.json --ply 0 --out rules.json", "read"),
    ("bench config.toml --json config.toml", "read"),
    ("bench config.toml --json x.png --plot x.png", "two"),
    ("curves run --csv x.png --out x.png", "two"),
    ("curves run --csv run/metrics.jsonl", "read"),
    # Runs that are there already, or are none.
    ("run --resume nowhere", "nowhere"),
    ("run --resume run", "config.json"),
    ("run --resume broken", "JSON"),
    ("run config.toml --runs . --name run", "--name"),
]

# Beside `run --resume DIRECTORY` of a finished run.
NOT_RESUMED = [
    ("--network.width 16", "network.width"),
    ("--seed 8", "seed"),
    ("--learner.learning_rate 1", "learner.learning_rate"),
    ("--rules.walls 5", "rules.walls"),
    ("--selfplay.boards 8", "selfplay.boards"),
    ("--name other", "No such file"),
    ("--iterations 5", "iterations"),
    ("--runs x", "--runs"),
]


NOT_FOR_PYTHON = {
    # Behind a command.
    "run_directory.py:  --resume ",
    "run_directory.py:  --distributed",
    "reporting.py:  --out game.html",
}


def messages(path: Path) -> list[str]:
    """The texts of a module, without docstrings and words of other programs, such as `--flag`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    texts = [each for each in ast.walk(tree) if isinstance(each, ast.Constant)]
    return [
        each.value
        for each in texts
        if isinstance(each.value, str) and id(each) not in said and each.value[:2] != "--"
    ]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """A folder with a game, rules, a config, runs and a link to a file to come."""
    folder = tmp_path_factory.mktemp("files")
    game = random_game(random.Random(0), tiny.RULES.to_dict(), grid=3)
    played = Record(tiny.RULES, tuple(game.actions), result=tuple(game.rewards[-1]))
    records.write(folder / "games.jsonl", [played])
    (folder / "rules.json").write_text(RULES)
    (folder / "config.toml").write_text(tiny.PATH.read_text())
    (folder / "link").symlink_to("x")
    (folder / "run").mkdir()
    row = {"iteration": 1, "positions": 8}
    (folder / "run" / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "broken").mkdir()
    (folder / "broken" / "config.json").write_text("{")
    return folder


@pytest.fixture
def files(prepared, tmp_path) -> Path:
    """The working directory, with those files."""
    return Path(shutil.copytree(prepared, tmp_path, symlinks=True, dirs_exist_ok=True))


@pytest.mark.parametrize(("words", "word"), REFUSED)
def test_refused(files, words, word):
    before = contents(files)
    said = command(*shlex.split(words))
    assert word in complaint(said)
    assert said.out == ""
    assert contents(files) == before


@pytest.mark.parametrize(("words", "word"), NOT_RESUMED)
def test_a_run_goes_on_as_it_began(finished, words, word):
    directory, _ = finished
    message = complaint(command("run", "--resume", directory, *words.split()))
    assert word in message


def test_a_run_is_not_written_over(finished, tmp_path):
    directory = finished[0]
    before = contents(directory)
    message = complaint(command("run", tiny.PATH, "--runs", directory.parent))
    assert f"python -m train run --resume {directory};" in message
    for name in (directory, "--resume"):
        assert "--resume" in complaint(command("run", name))
    assert "--resume" in complaint(command("run", tiny.PATH, "--resume", directory))
    assert str(directory) in complaint(command("fit", "--resume", directory))
    assert contents(directory) == before
    shutil.copytree(directory, tmp_path / "fitted")
    (tmp_path / "fitted" / "records.json").write_text("{}")
    message = complaint(command("run", "--resume", tmp_path / "fitted"))
    assert message.endswith(f"python -m train fit --resume {tmp_path}/fitted")


def test_a_run_without_a_checkpoint_keeps_its_config(finished, tmp_path):
    directory = tmp_path / CONFIG.name
    directory.mkdir()
    shutil.copy(finished[0] / "config.json", directory)
    assert "seed" in complaint(command("run", "--resume", directory, "--seed", "3"))


def test_a_failure_inside_a_program_is_one_line(monkeypatch):
    error = jax.errors.JaxRuntimeError("INTERNAL: at\na.b.UsageError: too large\n")
    monkeypatch.setattr(match, "play_in_rounds", Mock(side_effect=error))
    assert complaint(command("match", "random", "random")) == "too large"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (f"a: {argument('rules')} says which", "a: --rules says which"),
        (f"; {argument('transfer', True)} lets", "; --transfer lets"),
        (argument("start_weights", "runs/it's mine"), "--start-weights 'runs/it'\"'\"'s mine'"),
        (f"{argument('ply', 9)}: the game", "--ply 9: the game"),
        ("`run.close()` saves `rules`", "`run.close()` saves `rules`"),
    ],
)
def test_arguments_of_python_are_options_here(message, said):
    assert in_options(message) == said


def test_messages_outside_the_command_line_name_no_option():
    found = {
        f"{path.name}: {text}"
        for path in Path(train.__file__).parent.rglob("*.py")
        if path.parent.name not in ("cli", "bench") and path.name != "verbs.py"
        for text in messages(path)
        if re.search(r"(?<![\w-])--[a-z][a-z-]*\b(?!\.)", text) and "python -m" not in text
    }
    assert found <= NOT_FOR_PYTHON


def test_what_is_no_file_may_be_named_twice(tmp_path):
    options.check_files(Path("/dev/null"), None, Path("/dev/null"), inputs=["/dev/null", None])
    long = '{"size": 3}' + " " * 5000
    options.check_files(tmp_path / "wallzero-4stone", inputs=["wallzero-4stone", long, "\0"])
