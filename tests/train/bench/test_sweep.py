"""A sweep goes on to the end of memory and finds the knee, here with measurements made up."""

from types import SimpleNamespace

import jax
import pytest

from tests.support.learner import tiny
from train.bench import report, suite, sweep
from train.bench.harness.timing import Row
from train.bench.suite import Figures, Request
from train.runtime.errors import UsageError

OUT_OF_MEMORY = jax.errors.JaxRuntimeError(
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes."
)


def row(batch: int, speed: float, unit: str = "evaluations") -> Row:
    return Row("self-play", batch, 1, (1.0,), {unit: speed}, 0, None)


def measure_up_to(largest: int, error: Exception, asked: list[int] | None = None):
    """A device whose memory ends after a batch."""

    def measure(batch: int) -> list[Row]:
        if asked is not None:
            asked.append(batch)
        if batch > largest:
            raise error
        return [row(batch, float(batch)), row(batch, 1.0)]

    return measure


def test_an_accelerator_is_swept_from_small_to_large():
    assert sweep.default_batches("selfplay", "cpu") == (256, 1024)
    for platform in ("gpu", "tpu"):
        game = sweep.default_batches("env", platform)
        assert (game[0], game[-1]) == (1024, 262144)
        for part in ("search", "selfplay", "learn"):
            batches = sweep.default_batches(part, platform)
            assert (batches[0], batches[-1]) == (512, 16384)
        assert sweep.default_batches(sweep.PLOT, platform)[-1] == 262144
    assert sweep.default_batches(sweep.PLOT, "cpu")[-1] == 65536


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OUT_OF_MEMORY, "out of memory: Out of memory while trying"),
        (MemoryError(), "out of memory: an allocation failed"),
        (UsageError("--batch = 8192 needs 90 GiB; 4096 would fit"), "--batch = 8192 needs 90 GiB"),
    ],
)
def test_a_sweep_stops_where_memory_ends(error, reason):
    asked: list[int] = []
    measure = measure_up_to(2048, error, asked)
    found = sweep.sweep("selfplay", (8192, 512, 2048, 16384, 512), measure, unit="boards")
    assert asked == [512, 2048, 8192]
    assert [each.batch for each in found.rows] == [512, 512, 2048, 2048]
    assert found.note.startswith(f"selfplay: stopped before 8,192 boards: {reason}")


@pytest.fixture(autouse=True)
def no_garbage(monkeypatch):
    """A batch that does not fit leaves garbage, which takes long to collect beside other tests."""
    monkeypatch.setattr(sweep, "gc", SimpleNamespace(collect=lambda: 0))


@pytest.mark.parametrize("error", [OUT_OF_MEMORY, UsageError("no")])
def test_the_smallest_batch_must_fit(error):
    with pytest.raises(type(error)):
        sweep.sweep("env", (4, 8), measure_up_to(2, error))


def test_other_errors_are_not_the_end_of_memory():
    with pytest.raises(RuntimeError, match="broken"):
        sweep.sweep("env", (4, 8), measure_up_to(4, RuntimeError("broken")))


def test_nothing_is_noted_where_all_fits():
    found = sweep.sweep("env", (4, 8), measure_up_to(8, OUT_OF_MEMORY))
    assert (len(found.rows), found.note) == (4, "")


def test_knee_is_the_first_near_the_best():
    speeds = {256: 100.0, 64: 99.0, 16: 79.0, 1: 1.0}
    assert sweep.knee_at(speeds) == 64
    assert sweep.knee_text(speeds) == "knee at 64 boards, the fewest with 80% of the best speed"


@pytest.mark.parametrize("last", [124.0, 400.0])
def test_a_rising_curve_has_no_knee(last):
    speeds = {16: 10.0, 64: 98.9}
    assert sweep.knee_at(speeds) is None
    assert sweep.knee_at({16: 10.0}) is None
    speeds[256] = last
    assert sweep.knee_at(speeds) is None
    assert sweep.knee_text(speeds) == "no knee: the speed still rises at 256 boards"


def test_a_sweep_has_a_line_for_its_knee():
    speeds = ((512, 50.0), (2048, 95.0), (8192, 100.0))
    rows = tuple(("selfplay", row(batch, speed)) for batch, speed in speeds)
    (line,) = sweep.knee_lines(rows)
    assert line == "self-play: knee at 2,048 boards, the fewest with 80% of the best speed"
    assert list(sweep.knee_lines(rows[:2])) == []
    learned = [("learn", row(batch, speed, "positions")) for batch, speed in speeds]
    assert "2,048 samples" in next(iter(sweep.knee_lines(learned)))
    assert f"- {line}\n" in report.markdown("bench", Figures(rows, (), None))


def test_the_suite_sweeps_each_part_on_its_own(monkeypatch):
    """Only the part that does not fit stops; what it could not measure is told."""
    monkeypatch.setattr(suite, "_check_batch", lambda request, batch: None)
    monkeypatch.setattr(suite.jax, "default_backend", lambda: "gpu")
    measured = []

    def measure(request, part, batch, on_progress):
        measured.append((part, batch))
        return measure_up_to(2048 if part == "selfplay" else 10**6, OUT_OF_MEMORY)(batch)

    monkeypatch.setattr(suite, "measure_part", measure)
    monkeypatch.setattr(suite, "ratios", lambda rows: ())
    found = suite.run_suite(Request(tiny.config(), parts=("selfplay", "learn")))
    assert [batch for part, batch in measured if part == "selfplay"] == [512, 2048, 8192]
    assert [batch for part, batch in measured if part == "learn"] == [512, 2048, 8192, 16384]
    assert [note.partition(":")[0] for note in found.notes] == ["selfplay"]
