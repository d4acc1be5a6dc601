"""Every command takes every form of a trained player's name, and by default its rules."""

import json
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint
from tests.support.learner.plain_heuristics import referee_at
from train.analysis import accuracy as accuracy_lib
from train.loop.evaluation import check_opponents
from train.players import registry
from train.ratings import pool
from train.runtime.errors import UsageError
from wallgo_jax.formats import records
from wallgo_jax.game.rules import Rules

SHIPPED = "pretrained:wallzero-4stone"
FORMS = ("{run}", "{run}/checkpoints/6", "search:{run}", "net:{run}", "{model}", "net:{model}")


@pytest.fixture(scope="session")
def places(finished, tmp_path_factory) -> dict[str, Path]:
    """A run and the folder that `export` made of it."""
    run, _ = finished
    model = tmp_path_factory.mktemp("models") / "mine"
    said = command("export", run, model)
    assert (said.code, said.err) == (0, "")
    assert said.out == f"written: {model} (weights and card of {run}, iteration 6)\n"
    return {"run": run, "model": model}


def test_export_of_an_older_checkpoint_claims_no_later_match(places, tmp_path):
    assert command("export", f"{places['run']}/checkpoints/4", tmp_path / "old").code == 0
    card = json.loads((tmp_path / "old" / "card.json").read_text())
    rows = (places["run"] / "metrics.jsonl").read_text().splitlines()
    assert (card["iteration"], card["evaluation"]) == (4, None)
    assert card["last_metrics"] == json.loads(rows[3])


def match_of(first: object) -> str:
    counts = {"wins": 3, "draws": 0, "losses": 1, "win_rate": 0.75, "interval_95": [0.3, 0.95]}
    return json.dumps({"first": str(first), "second": "wjx", "opening_plies": 2, **counts})


def test_export_adds_matches_of_these_weights_to_the_card(places, tmp_path):
    path, model = tmp_path / "match.json", tmp_path / "model"
    path.write_text(match_of(f"search:{places['run']}@2"))
    for _ in range(2):  # a match counts once
        assert command("export", places["model"], model, "--matches", path).code == 0
        assert command("export", model, model, "--matches", path).code == 0
    card = json.loads((model / "card.json").read_text())
    assert card["matches"] == [json.loads(path.read_text())]
    page = (model / "README.md").read_text()
    assert f"| `search:{places['run']}@2` | `wjx` | 3, 0, 1 | 75 % (30.0 to 95.0) | 2 |" in page


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (match_of("{run}/checkpoints/4"), "weights"),
        (match_of("random"), "network"),
        (match_of("no/where"), "no/where"),
        ("{}", "'first'"),
        ("win", "read"),
        (None, "read"),
    ],
)
def test_other_matches_are_refused(text, word, places, tmp_path):
    path, run = tmp_path / "match.json", str(places["run"])
    if text is not None:
        path.write_text(text.replace("{run}", run))
    message = complaint(command("export", run, tmp_path / "new", "--matches", path))
    assert message.startswith(str(path)) and word in message
    assert not (tmp_path / "new").exists()


def test_export_leaves_other_folders_alone(places, tmp_path):
    for name, text in (("notes.txt", ""), ("card.json", "{}")):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text(text)
        assert str(folder) in complaint(command("export", places["run"], folder))
        assert [entry.name for entry in folder.iterdir()] == [name]
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", places["run"]):
        assert str(place) in complaint(command("export", places["model"], place))
    # A process that was killed while it wrote a first card leaves a part of it.
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / ".0123456789abcdef.tmp").touch()
    assert command("export", places["run"], tmp_path / "part").code == 0


def test_card_and_page_say_how_the_weights_were_made(places):
    card = json.loads((places["model"] / "card.json").read_text())
    assert (card["model"], card["run"], card["iteration"]) == ("mine", "tiny", 6)
    assert card["evaluation"]["iterations"] == 6 and card["last_metrics"]["positions"] == 32
    page = (places["model"] / "README.md").read_text()
    for told in ("# mine", "the rules 3x3", "| `tiny` | 6 | 7 | random weights |", "hours"):
        assert told in page
    assert "| 3 | 0.00 |" in page  # the short match after three iterations
    assert "simulations = 2\nmax_considered_actions = 2" in page


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_taken(form, places, tmp_path):
    player = form.format(**places)
    assert command("export", player, tmp_path / "again").code == 0
    cards = [
        json.loads((p / "card.json").read_text()) for p in (places["model"], tmp_path / "again")
    ]
    assert cards[0] | {"model": "again"} == cards[1]

    figures = tmp_path / "new" / "parts.json"
    said = command("inspect", "describe", player, "--no-measure", "--json", figures)
    assert (said.code, said.err) == (0, "")
    assert "R, width 8: the network of" in said.out
    parts = json.loads(figures.read_text())
    assert parts["parameters"] == sum(part["parameters"] for part in parts["parts"])

    for game in ("game.jsonl", "game.txt"):
        out = tmp_path / f"{game}.json"
        words = ["inspect", "ownership", player, places["run"] / game, "--ply", "2", "--out", out]
        assert command(*words).err == ""
        found = json.loads(out.read_text())
        assert found["network"].startswith(str(places["run" if "tiny" in player else "model"]))
    assert (tmp_path / "game.jsonl.json").read_text() == (tmp_path / "game.txt.json").read_text()

    # The rules are those that it has learned; others are asked for.
    words = ["match", player, "random", "--rules", "wallzero-4stone"]
    assert "--transfer" in complaint(command(*words))


def test_moves_are_of_the_rules_that_the_network_has_learned(places, tmp_path):
    moves, out = "A1 C3 A1->A1:W1 C3->C3:W0 A1->A1:W2", tmp_path / "o.json"
    said = command("inspect", "ownership", places["model"], moves, "--ply", "0", "--out", out)
    assert said.err == ""
    true = json.loads(out.read_text())["true"]
    assert [[row.count(1) for row in owner] for owner in true] == [[1, 0, 0], [2, 3, 3], [0, 0, 0]]


def test_tournament_takes_folders_and_the_rules_of_the_run(places, tmp_path):
    names = [f"{places['model']}@2", "random"]
    words = ["--games", "20", "--opening-plies", "0", "--json", tmp_path / "t.json"]
    assert command("tournament", *names, *words, "--records", tmp_path / "t.jsonl").code == 0
    record = json.loads((tmp_path / "t.json").read_text())
    assert Rules.from_dict(record["rules"]) == tiny.RULES
    assert {row["player"] for row in record["table"]} == {f"search:{places['model']}@2", "random"}
    assert sum(row["points"] for row in record["table"]) == 20
    games = list(records.read(tmp_path / "t.jsonl"))
    assert len(games) == 20
    assert all(referee_at(game.rules, game.actions).over for game in games)


def test_elo_takes_runs_folders_and_their_rules(places, tmp_path, monkeypatch):
    measure, make_play = Mock(side_effect=UsageError("enough")), Mock()
    monkeypatch.setattr(pool, "measure", measure)
    monkeypatch.setattr(pool, "make_play", make_play)
    model, run, cache = places["model"], places["run"], ["--cache", tmp_path / "games.jsonl"]
    words = [run, f"{model}@3", "wjx", "--anchors", "random", "wjx", "--simulations", "2"]
    assert complaint(command("elo", *words, *cache)) == "enough"
    turned = f"{run}?symmetries=8"
    words = [model, turned, f"{run}/checkpoints/4", "net:" + str(run), "--simulations", "0"]
    assert complaint(command("elo", *words, "--anchors", "random", *cache)) == "enough"
    assert [each.args[0] for each in make_play.call_args_list] == [tiny.RULES] * 2
    first, second = (
        {entrant.name: entrant.iteration for entrant in each.args[0]}
        for each in measure.call_args_list
    )
    single = {"random": None, "wjx": None, f"search:{model}@3": None}
    assert first == {"tiny/3": 3, "tiny/4": 4, "tiny/6": 6} | single
    trained = (f"net:{model}", f"net:{turned}", f"net:{run}/checkpoints/4", f"net:{run}")
    assert second == dict.fromkeys(("random", *trained))


def test_accuracy_is_on_the_rules_that_the_player_has_learned(places, monkeypatch):
    measure = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(accuracy_lib, "value_accuracy", measure)
    for name in (places["model"], "wjx", SHIPPED):
        command("accuracy", name)
    asked = [(player.name, rules) for (player, rules), _ in measure.call_args_list]
    # The tiny rules are also those of a board that is solved.
    assert asked[:2] == [(f"search:{places['model']}@64", tiny.RULES), ("wjx", tiny.RULES)]
    assert asked[2][1].size == 7


@pytest.mark.parametrize("words", [(), ("--positions", "9")])
def test_accuracy_takes_the_weights_of_heuristics_from_a_config(words, tmp_path, monkeypatch):
    path = tmp_path / "weights.toml"
    path.write_text("[heuristics.wjx]\nboundary = 7\n")

    def make(name, rules, *, heuristics, **options):
        raise UsageError(f"{name}: {heuristics.wjx.boundary}, {heuristics.ethen.boundary}")

    monkeypatch.setattr(registry, "make_player", make)
    said = complaint(command("accuracy", "wjx", *words, "--config", path))
    assert said == "wjx: 7, 6"


def test_configs_name_players_in_every_form(places):
    names = [form.format(**places) for form in FORMS]
    opponents = json.dumps(names)
    check_opponents(
        tiny.config("--evaluation.opponents", opponents, "--evaluation.anchors", opponents)
    )


@pytest.mark.parametrize(
    "words",
    [
        ["match", "{run}@2", SHIPPED],
        ["tournament", "{model}", "random", SHIPPED],
        ["elo", "{model}", SHIPPED, "--cache", "c"],
        ["elo", "{run}", "--anchors", SHIPPED],
    ],
)
def test_players_of_different_rules_need_rules(words, places):
    message = complaint(command(*(word.format(**places) for word in words)))
    assert "--rules" in message
    assert "--transfer" in message
