"""The bench's scripts: options, bad input, and Table 1's ratios on times that are given."""

import dataclasses
import json
import subprocess

import pytest

from tests.support.learner import tiny
from train.bench.harness import timing
from train.bench.harness.script import run_configured_script, run_script
from train.bench.harness.timing import Row
from train.bench.scripts import (
    dropped_visits,
    inference_time,
    match_overhead,
    openings,
    rivals,
    rounds,
    selfplay_parts,
    weak_scaling,
)
from train.checkpoints import pretrained
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
def test_bad_input_is_one_line(words, word, capsys):
    def main(options):
        raise UsageError(f"no time for {options.seeds}")

    with pytest.raises(SystemExit) as stopped:
        run_script(main, SomeOptions, name="script", arguments=words)
    assert stopped.value.code == 2
    complaint = capsys.readouterr().err
    assert word in complaint and complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("script", "words", "word"),
    [
        (match_overhead, ["--games", "7"], "games"),
        (match_overhead, ["--simulations", "0"], "simulations"),
        (rivals, ["--games", "0"], "games"),
        (rivals, ["--seed", "-1"], "seed"),
        (inference_time, ["--width", "250"], "width"),
        (inference_time, ["--seconds", "nan"], "seconds"),
        (inference_time, ["--json", "/dev/null/x"], "written"),
        (rounds, ["--boards", "4", "0"], "boards"),
        (rounds, ["--search.kind", "puct"], "gumbel"),
        (rounds, ["--rules", "hkoi,wallzero-empty"], "one rule set"),
        (rounds, ["--rules", "hkoi", "--grid", "9", "--network.playable", "true"], "rules"),
        (selfplay_parts, ["--repeats", "0"], "repeats"),
        (selfplay_parts, ["--rules", "hkoi,wallzero-empty"], "one"),
        (openings, ["--seed", "-1"], "seed"),
        (dropped_visits, ["--seed", "9999999999"], "seed"),
    ],
)
def test_bad_numbers_are_one_line_before_the_work(script, words, word, capsys, monkeypatch):
    for module, name in ((timing, "take_turns"), (match_overhead, "make_programs")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("it measured"))
    for module in (rounds, selfplay_parts):
        monkeypatch.setattr(module, "use_all_cores", lambda: None)
    takes_keys = script in (rounds, selfplay_parts, openings, dropped_visits)
    run = run_configured_script if takes_keys else run_script
    with pytest.raises(SystemExit) as stopped:
        run(script.main, script.Options, name="script", arguments=words)
    assert stopped.value.code == 2
    told = capsys.readouterr()
    assert told.err.startswith("error: ") and word in told.err and told.err.count("\n") == 1
    assert told.out == ""


def test_openings_vary_only_where_the_command_says_so():
    """Whatever the player's own run did."""
    own = pretrained.read_config("wallzero-4stone")
    assert own.selfplay.cheap_noise and own.selfplay.opening_plies
    selfplay = openings.configure(own, []).selfplay
    assert not selfplay.cheap_noise and selfplay.opening_plies == 0
    assert (selfplay.random_opening_prob, selfplay.temperature) == (0, 0)
    assert openings.configure(own, ["--selfplay.cheap_noise", "true"]).selfplay.cheap_noise


def test_openings_take_keys_of_the_config(capsys):
    found = []

    def main(options, overrides):
        found.append((options, openings.configure(tiny.config(), overrides)))

    def run(*words: str) -> None:
        run_configured_script(main, openings.Options, name="openings", arguments=words)

    run()
    options, config = found.pop()
    assert options == openings.Options()
    assert (config.selfplay.boards, config.selfplay.plies, config.iterations) == (128, 96, 1)
    assert (config.search.simulations, config.selfplay.opening_plies) == (16, 0)
    run("--seed", "3", "--selfplay.boards", "8", "--selfplay.opening_plies", "4")
    options, config = found.pop()
    assert options.seed == 3
    assert (config.selfplay.boards, config.selfplay.opening_plies) == (8, 4)
    for words in (("--selfplay.opening", "4"), ("--opening-plies", "4")):
        with pytest.raises(SystemExit) as stopped:
            run(*words)
        assert stopped.value.code == 2
        complaint = capsys.readouterr().err
        assert complaint.startswith("error: command line: unknown key ")
        assert complaint.count("\n") == 1


def test_ratios_are_taken_round_by_round():
    """The machine is three times as slow in the second round: both networks' times triple, no ratio
    changes."""
    base = row("6R", length=4, seconds=(0.004, 0.012, 0.004))
    other = row("6T", length=2, seconds=(0.005, 0.015, 0.004))
    found = inference_time._compare(other, base, parameters=7)
    assert found.parameters == 7
    assert found.milliseconds == pytest.approx(2.5)
    assert found.relative == pytest.approx(2.5)


def test_weak_scaling_runs_each_number_of_devices_in_its_own_process(monkeypatch, capsys):
    asked = []

    def run(words, env, **options):
        count = int(env["JAX_NUM_CPU_DEVICES"])
        asked.append((count, words[words.index("--boards") + 1], words[-2:]))
        work = weak_scaling.Work(count, 2.0 + 0.1 * (count > 1), 1.0)
        said = f"something\n{json.dumps(work._asdict())}\n"
        return subprocess.CompletedProcess(words, 0, said)

    monkeypatch.setattr(weak_scaling.subprocess, "run", run)
    options = weak_scaling.Options(devices=(1, 4), boards=8)
    weak_scaling.main(options, ["--search.simulations", "4"])
    assert asked == [(count, "8", ["--search.simulations", "4"]) for count in (1, 4)]
    lines = capsys.readouterr().out.splitlines()
    *_, first, second = (line for line in lines if line.startswith("|"))
    assert [cell.strip() for cell in first.split("|")[1:-1]] == ["1", "2.00", "+0%", "1.00", "+0%"]
    assert "+5%" in second
