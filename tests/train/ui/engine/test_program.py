"""The page's engine as a program: it plays by the models of a folder."""

import dataclasses
import json
import shutil
import subprocess

import pytest

from tests.support.learner import tiny
from train.checkpoints.weights import TrainedNetwork
from train.runtime.errors import UsageError
from train.ui import web


def test_the_program_plays_by_the_models_of_a_folder(engine, tmp_path):
    config = tiny.config()
    trained = TrainedNetwork(
        config, tiny.random_weights(config.network), "my run", "test", None, {}
    )
    settings = web.write_engine(tmp_path, [trained])
    assert [each["model"] for each in settings["machines"]] == ["weights/my-run"]
    start = {"type": "start_game_session", "bgsId": "a", "rules": tiny.RULES.to_dict()}
    asked = [start, {"type": "evaluate_position", "bgsId": "a", "details": True}]
    lines = "\n".join(map(json.dumps, asked))
    program = [shutil.which("node"), str(web.ENGINE / "node.js"), str(tmp_path), "8", "--fresh"]
    said = subprocess.run(program, input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in said.stdout.splitlines()]
    types = ["progress", "game_session_started", "evaluate_response"]
    assert [each["type"] for each in answers] == types
    assert (answers[-1]["simulations"], answers[-1]["success"]) == (8, True)
    assert len(answers[-1]["owners"]) == 9


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("search", "kind", "puct"),
        ("network", "custom", "mine"),
        ("network", "custom_planes", "mine"),
    ],
)
def test_what_the_engine_lacks_is_refused_by_name(tmp_path, table, key, value):
    config = tiny.config()
    options = dataclasses.replace(getattr(config, table), **{key: value})
    config = dataclasses.replace(config, **{table: options})
    trained = TrainedNetwork(
        config, tiny.random_weights(tiny.config().network), "net", "my run", None, {}
    )
    with pytest.raises(UsageError, match=f"{table}.{key}"):
        web.write_engine(tmp_path / "page", [trained])
    assert not (tmp_path / "page").exists()
