"""The bench's scripts: options, bad input, and Table 1's ratios on times that are given."""

import dataclasses
import json
from types import SimpleNamespace

import pytest

from train.bench.harness.script import run_script
from train.bench.harness.timing import ProgramStats, Row
from train.bench.scripts import accelerator, inference_time
from train.runtime.errors import UsageError


@dataclasses.dataclass(frozen=True)
class SomeOptions:
    """Options of a script."""

    seeds: tuple[int, ...] = (0,)
    """Seeds."""
    games: int = 4
    """Games."""


def row(name: str, *, length: int, seconds: tuple[float, ...]) -> Row:
    return Row("", name, 16, length, seconds, {}, 0, ProgramStats(1.5, True, 1234, 2_000_000))


def test_options_have_defaults():
    found = []
    run_script(found.append, inference_time.Options, name="script", arguments=[])
    assert found == [inference_time.Options()]


@pytest.mark.parametrize(
    ("words", "word"),
    [(["--seeds", "1", "2"], "(1, 2)"), (["--games", "many"], "games"), (["--gams", "3"], "gams")],
)
def test_bad_input_is_told(words, word, capsys):
    def main(options):
        raise UsageError(f"no time for {options.seeds}")

    with pytest.raises(SystemExit) as stopped:
        run_script(main, SomeOptions, name="script", arguments=words)
    assert stopped.value.code == 2
    assert word in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "words", "word"),
    [
        (inference_time, ["--width", "250"], "width"),
        (inference_time, ["--seconds", "nan"], "seconds"),
        (inference_time, ["--json", "/dev/null/x"], "written"),
        (accelerator, ["--out", "OUT", "--games", "4", "0"], "games"),
        (accelerator, ["--out", "OUT", "--limit", "0"], "limit"),
        (accelerator, ["--out", "OUT", "--parts", "fun"], "fun"),
    ],
)
def test_bad_numbers_are_one_line_before_the_work(
    script, words, word, capsys, monkeypatch, tmp_path
):
    for module, name in ((inference_time, "_measure"), (accelerator, "_in_a_process")):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("it measured"))
    words = [str(tmp_path / "out") if word == "OUT" else word for word in words]
    takes_keys = script is accelerator
    with pytest.raises(SystemExit) as stopped:
        run_script(
            script.main, script.Options, name="script", takes_keys=takes_keys, arguments=words
        )
    assert stopped.value.code == 2
    told = capsys.readouterr()
    assert word in told.err and "Traceback" not in told.err
    assert told.out == ""
    assert not (tmp_path / "out").exists()


def test_words_that_are_no_options_change_the_config():
    found = []

    def main(options, overrides):
        found.append((options, overrides))

    words = ["--games", "8", "--search.simulations", "4"]
    run_script(main, SomeOptions, name="script", takes_keys=True, arguments=words)
    assert found == [(SomeOptions(games=8), ["--search.simulations", "4"])]


def test_ratios_are_taken_round_by_round():
    """The machine is three times as slow in the second round: both networks' times triple, no ratio
    changes."""
    base = row("6R", length=4, seconds=(0.004, 0.012, 0.004))
    other = row("6T", length=2, seconds=(0.005, 0.015, 0.004))
    found = inference_time.compare(other, 7, base)
    assert found.parameters == 7
    assert found.milliseconds == pytest.approx(2.5)
    assert found.relative == pytest.approx(2.5)


def test_rows_are_written_as_they_are_measured_and_parts_of_equal_flags_share_a_process(
    monkeypatch, tmp_path
):
    """The process of the first three parts ends in its second, which is named; the third goes on
    in another one. Parts with other flags follow in theirs."""
    now, started = [0.0], []

    def run(words, env, timeout):
        names = words[words.index("--alone") + 1 : words.index("--seed")]
        started.append((names, env["XLA_FLAGS"]))
        options = accelerator.Options(tmp_path)
        for name in names:
            accelerator._write(options, name, row("net", length=1, seconds=(1.0,))._asdict())
            if name == "learn":
                return SimpleNamespace(returncode=-9)
            accelerator._write(options, name, {"seconds_of_part": 1.0})
        now[0] += 300.0
        return SimpleNamespace(returncode=0)

    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(accelerator.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(accelerator.subprocess, "run", run)
    monkeypatch.setattr(accelerator, "read_config", lambda *_: None)
    parts = ("search", "few-graphs", "learn", "profile", "search-graphs")
    accelerator.main(accelerator.Options(tmp_path, parts=parts), ["--seed", "3"])
    assert started == [
        (["search", "learn", "profile"], ""),
        (["profile"], ""),
        (["few-graphs", "search-graphs"], accelerator.IN_GRAPHS),
    ]
    lines = [json.loads(x) for x in (tmp_path / accelerator.RESULTS_FILE).read_text().splitlines()]
    assert [x["part"] for x in lines if "rates" in x] == [*parts[:1], *parts[2:4], *parts[1::3]]
    assert [(x["part"], x["error"]) for x in lines if "error" in x] == [
        ("learn", "its process ended with code -9")
    ]
