"""Each verb is one function behind two doors: Python and the command line say the same."""

import ast
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import train
from tests.support.import_graph import ROOT
from tests.support.learner import tiny
from tests.support.learner.commands import RULES, command
from tests.support.learner.saved import save_run
from train.api.verbs import VERBS
from train.search.config import SearchConfig, SearchKeys
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record

MOVES = "A1 C3 A1->A1:W1 C3->C3:W0"
PLAYED = (468, 476, 1, 416, 2)
"""A game of 3x3 that Blue wins: walls shut Red in."""
SMALL: dict[str, Any] = {"rules": tiny.RULES, "seed": 3, "opening_plies": 1}
WORDS = ["--rules", RULES, "--seed", 3, "--opening-plies", 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A run of two checkpoints and a file of games."""
    made = tmp_path_factory.mktemp("verbs")
    save_run(made / "run", seeds={1: 0, 2: 1})
    played = [
        Record(tiny.RULES, PLAYED, players=("me", name), result=(-1.0, 1.0)) for name in ("a", "b")
    ]
    records.write(made / "games.jsonl", played)
    return made


Door = tuple[list[Any], Callable[[], Any]]
BOTH_DOORS: dict[str, Callable[[Path], Door]] = {
    "match": lambda at: (
        ["match", "random", "greedy", *WORDS, "--games", 4],
        lambda: train.match("random", "greedy", games=4, **SMALL),
    ),
    "match of files": lambda at: (
        ["match", at / "games.jsonl"],
        lambda: train.series([at / "games.jsonl"]),
    ),
    "tournament": lambda at: (
        ["tournament", "random", "greedy", *WORDS, "--plot", at / "table.png"],
        lambda: train.tournament(["random", "greedy"], **SMALL),
    ),
    "elo": lambda at: (
        [
            *("elo", "--anchors", "random", "greedy", *WORDS, "--games", 4, "--budget", 4),
            *("--cache", at / "kept.jsonl"),
        ],
        lambda: train.elo(["random", "greedy"], games=4, budget=4, **SMALL),
    ),
    "describe": lambda at: (
        ["describe", tiny.PATH, "--no-measure"],
        lambda: train.describe(tiny.PATH, measure=False),
    ),
    "review": lambda at: (
        [
            *("review", MOVES, "--player", "heuristic-search:wjx@2", "--rules", RULES),
            *("--out", at / "review.html"),
        ],
        lambda: train.review_game(MOVES, "heuristic-search:wjx@2", rules=tiny.RULES),
    ),
    "prove": lambda at: (
        ["prove", at / "games.jsonl", "--late", at / "late.jsonl"],
        lambda: train.prove([at / "games.jsonl"], late=at / "again.jsonl"),
    ),
}
"""The words of a command, and the call that gives the same summary."""


@pytest.mark.parametrize("name", BOTH_DOORS)
def test_both_doors_give_the_same_summary(name, folder, tmp_path):
    words, call = BOTH_DOORS[name](folder)
    said = command(*words, "--json", tmp_path / "found.json")
    assert (said.code, said.err) == (0, "")
    found = json.loads((tmp_path / "found.json").read_text())
    assert found == json.loads(json.dumps(call().summary()))


def test_an_export_is_the_same_from_both_doors(folder, tmp_path):
    assert command("export", folder / "run", tmp_path / "one").code == 0
    train.export(folder / "run", tmp_path / "two")
    one, two = (json.loads((tmp_path / name / "card.json").read_text()) for name in ("one", "two"))
    assert one | {"model": "two"} == two


@pytest.mark.parametrize("word", VERBS)
def test_a_verb_is_a_function_of_train(word):
    verb = VERBS[word]
    call = getattr(train, verb.name)
    assert callable(call)
    if verb.place.startswith("train.api."):
        assert inspect.unwrap(call).__module__ == verb.place.partition(":")[0]
    assert verb.examples and all(line.split()[0] == word for line in verb.examples)


def test_the_interface_page_says_which_function_has_another_name():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for word, verb in VERBS.items():
        if verb.name != word.replace("-", "_"):
            assert f"`{word}" in page and f"`train.{verb.name}`" in page, word


SHOWN = sorted(name for name in train.__all__ if inspect.isfunction(getattr(train, name)))


@pytest.mark.parametrize("name", SHOWN)
def test_an_argument_has_its_line_and_a_type(name):
    """Its docstring names each argument; no type is open."""
    call = inspect.unwrap(getattr(train, name))
    tree = ast.parse(inspect.getsource(call))
    assert isinstance(tree.body[0], ast.FunctionDef)
    arguments = tree.body[0].args
    each = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    each += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    for argument in each:
        assert re.search(rf"^ +{argument.arg}: ", call.__doc__, re.MULTILINE), argument.arg
        assert argument.annotation is not None
        assert not re.search(r"\bAny\b", ast.unparse(argument.annotation)), argument.arg
    assert not re.search(r"\bAny\b", ast.unparse(tree.body[0].returns))


@pytest.mark.parametrize("name", SHOWN)
def test_help_shows_types_alone(name):
    assert "Annotated" not in str(inspect.signature(getattr(train, name)))


def test_keys_of_a_search_are_those_of_the_config():
    kinds = {name: field.type for name, field in SearchConfig.__dataclass_fields__.items()}
    assert set(SearchKeys.__annotations__) == set(kinds) - {"simulations", "custom"}
