"""Descriptions of networks: the page, the measured speed, refusals."""

import io
import json
import math
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

from tests.support.learner import saved, tiny
from train.analysis.describe import Description, describe
from train.network import NetworkConfig, compute_dtype, make_network
from wallgo_jax import planes as planes_lib


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run whose newest checkpoint is of iteration 10."""
    return saved.save_run(tmp_path_factory.mktemp("runs") / "one", seeds={9: 0, 10: 1})


def shown(description: Description) -> str:
    """The page as it stands on an 80 column console."""
    out = io.StringIO()
    Console(file=out, width=80).print(*description.shown(), sep="\n")
    return out.getvalue()


def test_config_file_is_described():
    description = describe(tiny.PATH, measure=False)
    assert description.config == tiny.config()
    assert description.speed is None
    total = sum(part.parameters for part in description.parts)
    (footer,) = (line for line in shown(description).splitlines() if "total" in line)
    assert f"{total:,}" in footer


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
    measured = description.summary()["speed"]
    assert json.loads(json.dumps(measured)) == measured and measured["batch"] == 8


@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_dtype_is_the_one_that_the_program_computes_in(dtype):
    channels = planes_lib.channels("B", 2)
    network = make_network(NetworkConfig(blocks="R", width=12, dtype=dtype), channels)
    planes = jax.ShapeDtypeStruct((1, 5, 5, len(channels)), np.bool_)
    program = str(jax.make_jaxpr(network.evaluate)(network.shapes, planes))
    short = {"float32": "f32", "bfloat16": "bf16"}[compute_dtype(dtype).name]
    convolutions = [line for line in program.splitlines() if "conv_general_dilated" in line]
    assert convolutions
    assert all(f":{short}[" in line for line in convolutions)
