"""Descriptions of networks: counts against parameters and formulas, the page, refusals."""

import dataclasses
import io
import json
import math
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

from tests.support.learner import saved, tiny
from train.analysis.describe import Description, describe, describe_record, describe_report
from train.network import NetworkConfig, census, compute_dtype, count_parameters, make_network
from train.runtime.errors import UsageError
from wallgo_jax import planes as planes_lib

CHANNELS = planes_lib.channels("B", 2)
SIZE, PLANES, PLAYERS = 5, 8, 2
WIDTH, HEADS, HIDDEN, VALUE_WIDTH = 12, 3, 18, 6
CONFIG = NetworkConfig(
    blocks="RT", width=WIDTH, heads=HEADS, mlp_ratio=1.5, value_width=VALUE_WIDTH, planes="B"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run whose newest checkpoint is of iteration 10."""
    return saved.save_run(tmp_path_factory.mktemp("runs") / "one", seeds={9: 0, 10: 1})


def shown(description: Description) -> str:
    """The page as it stands on an 80 column console."""
    out = io.StringIO()
    Console(file=out, width=80).print(describe_report(description))
    return out.getvalue()


def by_name(config: NetworkConfig) -> dict:
    return {part.name: part for part in census(config, CHANNELS, size=SIZE)}


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "layer", "margin": True, "value": "wdl", "ownership": False},
        {"norm": "none", "reply": True, "blocks": "R"},
        {"blocks": "WT", "destination_head": True, "destination_width": 4, "walking_bias": True},
    ],
    ids=str,
)
def test_parts_are_all_parameters(changes):
    config = dataclasses.replace(CONFIG, **changes)
    parts = census(config, CHANNELS, size=SIZE)
    total = count_parameters(make_network(config, CHANNELS).shapes)
    assert sum(part.parameters for part in parts) == total
    assert len({part.name for part in parts}) == len(parts)


def test_shapes():
    shapes = {name: part.shape for name, part in by_name(CONFIG).items()}
    assert shapes == {
        "stem": (SIZE, SIZE, WIDTH),
        "block 1 R": (SIZE, SIZE, WIDTH),
        "block 2 T": (SIZE, SIZE, WIDTH),
        "policy": (SIZE, SIZE, 53),
        "value": (1,),
        "ownership": (SIZE, SIZE, PLAYERS + 1),
    }


def test_parameters_by_hand():
    parts = by_name(CONFIG)
    norm = 2 * WIDTH
    assert parts["stem"].parameters == 9 * PLANES * WIDTH + norm
    assert parts["block 1 R"].parameters == 2 * (9 * WIDTH * WIDTH + norm)
    attention = (WIDTH + 1) * 3 * WIDTH + (WIDTH + 1) * WIDTH + HEADS * 17 * 17
    mlp = (WIDTH + 1) * HIDDEN + (HIDDEN + 1) * WIDTH
    assert parts["block 2 T"].parameters == attention + mlp + 2 * norm
    assert parts["policy"].parameters == (WIDTH + 1) * 53 + 2 * WIDTH * 53
    assert parts["value"].parameters == (2 * WIDTH + 1) * VALUE_WIDTH + VALUE_WIDTH + 1


def test_multiply_adds_by_hand():
    """A convolution works at every cell, for each tap of its kernel, borders counted as cells."""
    cells = SIZE * SIZE
    parts = {name: part.multiply_adds for name, part in by_name(CONFIG).items()}
    assert parts["stem"] == cells * 9 * PLANES * WIDTH
    assert parts["block 1 R"] == 2 * cells * 9 * WIDTH * WIDTH
    projections = cells * WIDTH * 3 * WIDTH + cells * WIDTH * WIDTH
    scores = mixing = HEADS * cells * cells * (WIDTH // HEADS)
    mlp = 2 * cells * WIDTH * HIDDEN
    assert parts["block 2 T"] == projections + scores + mixing + mlp
    assert parts["policy"] == cells * WIDTH * 53 + 2 * WIDTH * 53
    assert parts["value"] == 2 * WIDTH * VALUE_WIDTH + VALUE_WIDTH
    owners = PLAYERS + 1
    assert parts["ownership"] == cells * WIDTH * owners + 2 * WIDTH * owners


def test_config_file_is_described():
    description = describe(tiny.PATH, measure=False)
    assert description.config == tiny.config()
    assert description.speed is None
    page = shown(description)
    for words in ("R, width 8", "block 1 R", "policy", "one 3×3 board of 8 planes (B)", "3×3×53"):
        assert words in page
    assert "evaluations/s" not in page
    total = sum(part.parameters for part in description.parts)
    (footer,) = (line for line in page.splitlines() if "total" in line)
    assert f"{total:,}" in footer
    assert "100.0%" in footer


def test_run_directory_is_measured(run, monkeypatch):
    """By runs too short to mean anything."""
    monkeypatch.setattr("train.analysis.describe.RUN_SECONDS", 0.01)
    description = describe(str(run), batch=8)
    assert description.source == f"{run}, iteration 10"
    assert description.config == tiny.config()
    speed = description.speed
    assert speed is not None
    assert (speed.batch, speed.device) == (8, jax.devices()[0].device_kind)
    assert 0 < speed.evaluations_per_second < math.inf
    work = sum(part.multiply_adds for part in description.parts)
    assert speed.multiply_adds_per_second == pytest.approx(speed.evaluations_per_second * work)
    page = shown(description)
    assert "evaluations/s" in page
    assert f"batch 8 · {speed.dtype} · {speed.device}" in page
    measured = describe_record(description)["speed"]
    assert json.loads(json.dumps(measured)) == measured and measured["batch"] == 8


@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_dtype_is_the_one_that_the_program_computes_in(dtype):
    network = make_network(dataclasses.replace(CONFIG, blocks="R", dtype=dtype), CHANNELS)
    planes = jax.ShapeDtypeStruct((1, SIZE, SIZE, PLANES), np.bool_)
    program = str(jax.make_jaxpr(network.evaluate)(network.shapes, planes))
    short = {"float32": "f32", "bfloat16": "bf16"}[compute_dtype(dtype).name]
    convolutions = [line for line in program.splitlines() if "conv_general_dilated" in line]
    assert convolutions
    assert all(f":{short}[" in line for line in convolutions)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("missing", "missing"),
        ("greedy", "network"),
    ],
)
def test_refusals(target, said):
    with pytest.raises(UsageError, match=said) as caught:
        describe(target)
    assert "\n" not in str(caught.value)
