"""The script for accelerators: bad input, words that change the config, and parts by process."""

import json
from types import SimpleNamespace

import pytest

from train.bench import accelerator
from train.bench.script import run_script
from train.bench.timing import BenchRow, ProgramStats


def run(words, main=accelerator.main):
    run_script(main, accelerator.Options, name="accelerator", takes_keys=True, words=words)


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["--games", "4", "0"], "games"),
        (["--games", "many"], "games"),
        (["--limit", "0"], "limit"),
        (["--minutes", "nan"], "minutes"),
        (["--parts", "fun"], "fun"),
    ],
)
def test_bad_input_is_told_before_the_work(words, word, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(accelerator, "_in_a_process", lambda *_: pytest.fail("it measured"))
    with pytest.raises(SystemExit) as stopped:
        run(["--out", str(tmp_path / "out"), *words])
    said = capsys.readouterr()
    assert stopped.value.code == 2 and said.out == ""
    assert word in said.err and "Traceback" not in said.err
    assert not (tmp_path / "out").exists()


def test_words_that_are_no_options_change_the_config(tmp_path):
    calls = []
    words = ["--out", str(tmp_path), "--games", "8", "--search.simulations", "4"]
    run(words, lambda *given: calls.append(given))
    options = accelerator.Options(tmp_path, games=(8,))
    assert calls == [(options, ["--search.simulations", "4"])]


def test_rows_are_written_as_they_are_measured_and_parts_of_equal_flags_share_a_process(
    monkeypatch, tmp_path
):
    """The process of the first three parts ends in its second, which is named; the third goes on
    in another one. Parts with other flags follow in theirs."""
    now, started = [0.0], []
    stats = ProgramStats(1.5, True, 1234, 2_000_000)
    row = BenchRow("", "net", 16, 1, (1.0,), {}, 0, stats)

    def run_process(words, env, timeout):
        names = words[words.index("--alone") + 1 : words.index("--seed")]
        started.append((names, env["XLA_FLAGS"]))
        options = accelerator.Options(tmp_path)
        for name in names:
            accelerator._write(options, name, row._asdict())
            if name == "learn":
                return SimpleNamespace(returncode=-9)
            accelerator._write(options, name, {"seconds_of_part": 1.0})
        now[0] += 300.0
        return SimpleNamespace(returncode=0)

    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(accelerator.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(accelerator.subprocess, "run", run_process)
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
