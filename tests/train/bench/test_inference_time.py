"""Table 1's script: bad input, and ratios on times that are given."""

import pytest

from train.bench import inference_time
from train.bench.script import run_script
from train.bench.timing import BenchRow


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["--width", "250"], "width"),
        (["--rounds", "0"], "rounds"),
        (["--seconds", "nan"], "seconds"),
        (["--json", "/dev/null/x"], "written"),
        (["--size", "many"], "size"),
        (["--siez", "9"], "siez"),
    ],
)
def test_bad_input_is_told_before_the_work(words, word, capsys, monkeypatch):
    monkeypatch.setattr(inference_time, "_measure", lambda *_: pytest.fail("it measured"))
    with pytest.raises(SystemExit) as stopped:
        run_script(inference_time.main, inference_time.Options, name="inference_time", words=words)
    said = capsys.readouterr()
    assert stopped.value.code == 2 and said.out == ""
    assert word in said.err and "Traceback" not in said.err


def test_ratios_are_taken_round_by_round():
    """The machine is three times as slow in the second round: both networks' times triple, no ratio
    changes."""

    def row(name: str, length: int, *seconds: float) -> BenchRow:
        return BenchRow("", name, 16, length, seconds, {}, 0, None)

    found = inference_time.compare(
        row("6T", 2, 0.005, 0.015, 0.004), 7, row("6R", 4, 0.004, 0.012, 0.004)
    )
    assert found == ("6T", 7, pytest.approx(2.5), pytest.approx(2.5))
