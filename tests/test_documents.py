"""README, docs and configs: links lead somewhere, commands parse, nothing is left to fill in."""

import ast
import contextlib
import io
import itertools
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import site
from train import game
from train.checkpoints import pretrained
from train.cli import command_line as train_program
from train.cli.commands import Command
from train.cli.run import RunCommand
from train.config import read_config
from train.players.names import OPTIONS, PLAYER_KINDS
from wallgo_jax.cli import command_line as game_program
from wallgo_jax.cli.commands import Convert, Replay, Show

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
CONTRIBUTING = ROOT / ".github" / "CONTRIBUTING.md"
PAGES = [README, CONTRIBUTING, *sorted((ROOT / "docs").glob("**/*.md"))]
CONFIGS = sorted((ROOT / "configs").glob("*.toml"))
SHARED = ("--out", "--seed", "--help")
"""Options of every experiment."""
SHELLS = ("bash", "sh", "console")
MAX_README_LINES = 140


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Language and content of each code block."""
    yield from re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def commands_in(script: str) -> Iterator[list[str]]:
    """The words of each Python command of a shell script, without `python` itself."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&;|")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if word.strip("&;|"):
                words.append(word)
                continue
            starts = [i for i, each in enumerate(words) if Path(each).name.startswith("python")]
            if starts:
                yield words[starts[0] + 1 :]
            words = []


def commands_of(path: Path) -> list[list[str]]:
    """The Python commands of a page's code blocks, or of a config's first comment."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        scripts = [content for language, content in blocks(text) if language in SHELLS]
    else:
        plain = re.sub(r"^#", "", text, flags=re.MULTILINE)
        scripts = re.findall(r"^   commands? (.*?)^   hardware", plain, re.MULTILINE | re.DOTALL)
    return [words for script in scripts for words in commands_in(script)]


@pytest.fixture(scope="module")
def fresh_clone(tmp_path_factory) -> Path:
    """A folder with what a clone holds, without what commands write, such as runs/quickstart."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("configs", "docs", "notebooks", "tests", "train", "wallgo_jax", "README.md"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture
def check_command(monkeypatch, fresh_clone) -> Callable[[list[str]], None]:
    """Fails for a command or an option that does not exist; commands do nothing."""
    monkeypatch.chdir(fresh_clone)
    for kind in (Command, *train_program.PROGRAM.commands.values()):
        if "run" in vars(kind):
            monkeypatch.setattr(kind, "run", _read_config_only)
    for kind in (Convert, Replay, Show):
        monkeypatch.setattr(kind, "run", lambda self, console: None)
    return _check_command


def _read_config_only(command: Any, overrides: Sequence[str] = ()) -> int:
    path = getattr(command, "config", None)
    if not isinstance(path, Path | None) or not hasattr(command, "config"):
        return 0
    config = read_config(path if path and path.exists() else None, overrides)
    if isinstance(command, RunCommand) and command.resume is None:
        for opponent in (*config.evaluation.opponents, *config.evaluation.anchors):
            kind, _, model = opponent.partition(":")
            if kind == "pretrained":
                learned = pretrained.read_config(model.partition("@")[0]).learned
                assert set(config.learned) <= set(learned), f"{opponent} plays other rules"
    return 0


def _check_command(words: list[str]) -> None:
    match words:
        case ["-m", "train" | "wallgo_jax" as package, *arguments] if arguments:
            main = train_program.main if package == "train" else game_program.main
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                try:
                    code = main(arguments)
                except SystemExit as leaving:  # after --help
                    code = leaving.code
            assert not code, said.getvalue()
        case ["-m", module, *arguments] if module.split(".")[0] in ("train", "tests"):
            _check_script(ROOT / f"{module.replace('.', '/')}.py", arguments)
        case [script, *arguments] if script.endswith(".py"):
            _check_script(ROOT / script, arguments)


def _check_script(path: Path, arguments: list[str]) -> None:
    """A script names its options, or has them as fields of a class."""
    text = path.read_text(encoding="utf-8")
    for word in arguments:
        if word.startswith("--"):
            option = word.partition("=")[0]
            field = rf"^    {option.removeprefix('--').replace('-', '_')}: "
            is_there = f'"{option}"' in text or re.search(field, text, re.MULTILINE)
            is_there = is_there or (path.parent.name == "experiments" and option in SHARED)
            assert is_there, f"{path.name} has no option {word}"


@pytest.mark.parametrize("path", [*PAGES, *CONFIGS], ids=name_of)
def test_every_command_parses(path, check_command):
    for words in commands_of(path):
        check_command(words)


def examples() -> list[str]:
    """The lines that the help pages of both programs end with."""
    found = []
    for program in (train_program.PROGRAM, game_program.PROGRAM):
        lines = [*program.examples, *itertools.chain(*program.examples_of.values())]
        found += [f"{program.name} {line}" for line in lines]
    return found


@pytest.mark.parametrize("example", examples())
def test_every_example_of_the_help_pages_parses(example, check_command):
    for words in commands_in(example):
        check_command(words)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_page_is_whole(path):
    """Its Python parses, its links lead to a file, and nothing is left to fill in."""
    text = path.read_text("utf-8")
    assert re.findall(r"@[A-Z0-9]+@|@FIGURE|TODO|TBD|FIXME|\bXX+\b", text) == []
    for language, content in blocks(text):
        if language == "python":
            ast.parse(content)
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        file, _, heading = target.partition("#")
        linked = (path.parent / file) if file else path
        assert linked.exists(), f"{target}: no such file"
        if heading and linked.suffix == ".md":
            assert heading in _anchors(linked), f"{target}: no such heading"


def test_the_page_of_players_has_every_kind_and_every_option():
    text = (ROOT / "docs" / "players.md").read_text("utf-8")
    rows = " ".join(re.findall(r"^\| (`[^|]*) \|", text, flags=re.MULTILINE))
    for kind in PLAYER_KINDS:
        assert re.search(rf"`{kind}[`:]", rows), kind
    for option in OPTIONS:
        assert f"`{option}=" in rows, option


RESULTS = sorted((ROOT / "docs/results").glob("*.md"))


@pytest.mark.parametrize("path", RESULTS, ids=name_of)
def test_a_page_of_results_begins_with_its_measurement(path):
    """At most three lines: what was measured, on how many trainings, at which commit."""
    text = path.read_text("utf-8")
    opening = text.split("\n\n")[1]
    assert opening.startswith("**Measured**: ")
    assert len(opening.splitlines()) <= 3
    for part in (r"training|no network", r"\*\*Commits?\*\*", r"\bJAX\b|no network", r"\*Data"):
        assert re.search(part, opening), part
    assert re.search(r"\b[0-9a-f]{8}\b", text)


def _anchors(path: Path) -> list[str]:
    """The anchor of each heading of a page, as links write it."""
    headings = re.findall(r"^#+ +(.*)$", path.read_text("utf-8"), flags=re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading).lower() for heading in headings]
    return [heading.strip().replace(" ", "-") for heading in plain]


def test_the_site_shows_every_page():
    """A page of results is found from their index."""
    text = (ROOT / "zensical.toml").read_text("utf-8")
    shown = re.findall(r'"([\w/]+\.md)"', text)
    assert len(shown) == len(set(shown))
    assert set(shown) == {p for p in site.pages().values() if not p.startswith("results/")}


def test_a_link_of_the_repository_leads_to_a_page_of_the_site():
    linked: set[str] = set()
    text = "[a](../configs/cpu.toml) [b](../wallgo_jax/RULES.md#x) [c](#d) [e](https://f.g)"
    found = site.relinked(text, "docs/runs.md", site.pages(), linked)
    assert found == "[a](files/configs/cpu.toml.md) [b](rules.md#x) [c](#d) [e](https://f.g)"
    assert linked == {"configs/cpu.toml", "wallgo_jax/RULES.md"}
    picture = '<img src="docs/images/game.svg" width="400">'
    found = site.relinked(picture, "README.md", site.pages(), linked)
    assert found == '<img src="images/game.svg" width="400">'


def test_the_functions_of_an_iteration_are_where_the_page_says():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\|[^|]+\| (`\S+\.py`.*?) \| (.*?) \|$", text, flags=re.MULTILINE)
    assert len(rows) >= 30
    for files, functions in rows:
        code = "".join((ROOT / path).read_text("utf-8") for path in re.findall(r"`(.*?)`", files))
        for name in re.findall(r"`(.*?)`", functions):
            defined = rf"^ *(def|class) {name}\b"
            assert re.search(defined, code, flags=re.MULTILINE), f"{files}: {name}"


def test_the_page_has_every_name_that_the_learner_takes_of_the_game():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    section = text.partition("## What would your own game need?\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\|[^|]+\| (`.*?`) \|", section, flags=re.MULTILINE)
    described = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(described) == sorted(name for name in vars(game) if not name.startswith("__"))


def test_readme_is_a_front_door():
    assert len(README.read_text("utf-8").splitlines()) <= MAX_README_LINES


def test_the_moving_picture_is_what_its_command_draws(tmp_path, fresh_clone, monkeypatch):
    results = (ROOT / "docs" / "results.md").read_text("utf-8")
    (line,) = re.findall(r"^`python -m wallgo_jax (.*) --out \S+` drew it", results, re.M)
    monkeypatch.chdir(fresh_clone)
    assert game_program.main([*shlex.split(line), "--out", str(tmp_path / "game.svg")]) == 0
    kept = ROOT / "docs" / "images" / "game.svg"
    assert "docs/images/game.svg" in README.read_text("utf-8")
    assert (tmp_path / "game.svg").read_text("utf-8") == kept.read_text("utf-8")


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_every_config_says_how_it_is_run(path):
    """Its first comment names the command, the hardware, the time, and the expected result."""
    opening = path.read_text("utf-8").split("\n\n")[0]
    assert all(line.startswith("#") for line in opening.splitlines())
    for word in ("commands?", "hardware", "time", "expected"):
        assert re.search(rf"^#   {word} +\S", opening, flags=re.MULTILINE), word
    assert commands_of(path) != []


@pytest.mark.parametrize(
    "command",
    [
        "python -m train match random greedy --gamez 4",
        "python -m train run configs/cpu.toml --rules wallzero-empty --name empty",
        "cd x && python3 -m wallgo_jax shew A1",
        "python train/bench/suite.py --rounds 5 --siez 9",
    ],
)
def test_a_wrong_command_is_noticed(command, check_command):
    (words,) = commands_in(command)
    with pytest.raises((AssertionError, FileNotFoundError)):
        check_command(words)
