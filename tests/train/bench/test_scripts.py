"""The bench's scripts: options, bad input, and Table 1's ratios on times that are given."""

import dataclasses

import pytest

from train.bench.harness.script import run_script
from train.bench.harness.timing import Row
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
    return Row(name, 16, length, seconds, {}, 0, None)


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
    found = inference_time._compare(other, base, parameters=7)
    assert found.parameters == 7
    assert found.milliseconds == pytest.approx(2.5)
    assert found.relative == pytest.approx(2.5)
