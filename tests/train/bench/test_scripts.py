"""The bench's scripts: options, bad input, and Table 1's ratios on times that are given."""

import dataclasses
import functools
import json
import subprocess

import jax
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
from train.network.build import network_for
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


@pytest.mark.parametrize("script", [inference_time, match_overhead])
def test_options_have_defaults(script):
    found = []
    run_script(found.append, script.Options, name="script", arguments=[])
    assert found == [script.Options()]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seeds", "1", "2"], "error: no time for (1, 2)"),
        (["--games", "many"], "error: command line: "),
        (["--gams", "3"], "did you mean --games?"),
    ],
)
def test_bad_input_is_one_line(words, said, capsys):
    def main(options):
        raise UsageError(f"no time for {options.seeds}")

    with pytest.raises(SystemExit) as stopped:
        run_script(main, SomeOptions, name="script", arguments=words)
    assert stopped.value.code == 2
    complaint = capsys.readouterr().err
    assert said in complaint and complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        (match_overhead, ["--games", "7"], "match: games (7) must be an even number, at least 2"),
        (match_overhead, ["--boards", "255"], "match: batch (255) must be an even number"),
        (match_overhead, ["--repeats", "0"], "--repeats (0) must be at least 1"),
        (match_overhead, ["--simulations", "0"], "config: search.simulations must be at least 1"),
        (rivals, ["--games", "0"], "match: games (0) must be at least 1"),
        (rivals, ["--seed", "-1"], "--seed (-1) must be from 0 to 2147483647"),
        (inference_time, ["--width", "250"], "width 250 is not a multiple of heads 4"),
        (inference_time, ["--rounds", "0"], "--rounds (0) must be at least 1"),
        (inference_time, ["--seconds", "nan"], "--seconds (nan) must be above 0"),
        (inference_time, ["--json", "/dev/null/x"], "/dev/null/x: cannot be written"),
        (rounds, ["--repeats", "0"], "--repeats (0) must be at least 1"),
        (rounds, ["--boards", "4", "0"], "--boards (0) must be at least 1"),
        (rounds, ["--simulations", "100000000"], "--simulations must be at most "),
        (rounds, ["--rules", "hkoi", "--grid", "9", "--network.playable", "true"], "rounds: rules"),
        (selfplay_parts, ["--repeats", "0"], "--repeats (0) must be at least 1"),
        (selfplay_parts, ["--boards", "0"], "--boards (0) must be at least 1"),
        (selfplay_parts, ["--seconds", "0"], "--seconds (0.0) must be above 0"),
        (openings, ["--seed", "-1"], "--seed (-1) must be from 0"),
        (dropped_visits, ["--seed", "9999999999"], "--seed (9999999999) must be from 0"),
    ],
)
def test_bad_numbers_are_one_line_before_the_work(script, words, said, capsys, monkeypatch):
    for module, name in ((timing, "take_turns"), (match_overhead, "make_programs")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("it measured"))
    takes_keys = script in (rounds, selfplay_parts, openings, dropped_visits)
    run = run_configured_script if takes_keys else run_script
    with pytest.raises(SystemExit) as stopped:
        run(script.main, script.Options, name="script", arguments=words)
    assert stopped.value.code == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"error: {said}") and told.err.count("\n") == 1
    assert told.out == ""


def test_openings_vary_only_where_the_command_says_so():
    """Whatever the player's own run did."""
    own = pretrained.read_config("wallzero-4stone")
    assert own.selfplay.cheap_noise and own.selfplay.opening_plies
    selfplay = openings.configure(own, []).selfplay
    assert not selfplay.cheap_noise and selfplay.opening_plies == 0
    assert (selfplay.random_opening_prob, selfplay.temperature) == (0, 0)
    assert openings.configure(own, ["--selfplay.cheap_noise", "true"]).selfplay.cheap_noise


@pytest.mark.slow
def test_openings_are_boosted_only_where_the_command_says_so():
    own = tiny.config("--search.prior_boost", '["stay=2.0"]')
    network = network_for(own.network, own.rules.players, size=own.rules.size)
    for words in ([], ["--search.prior_boost", '["stay=1.0"]']):
        words = [*words, "--selfplay.boards", "4", "--selfplay.plies", "3"]
        play = functools.partial(openings.played_plies, own, overrides=words, seed=0)
        played = jax.eval_shape(lambda variables, play=play: play(variables)[1], network.shapes)
        assert played.slot.shape == (3, 4)
    assert openings.configure(own, []).search.prior_boost == ()


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


@pytest.mark.slow
def test_inference_times_are_written(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(inference_time, "TABLE_1", inference_time.TABLE_1[:2])
    out = tmp_path / "times.json"
    inference_time.main(
        inference_time.Options(
            size=3, width=8, heads=2, batch=2, rounds=1, seconds=1e-4, dtype="float32", json=out
        )
    )
    record = json.loads(out.read_text())
    assert [each["name"] for each in record["networks"]] == ["6R", "6T"]
    assert record["networks"][0]["relative"] == 1
    assert record["networks"][1]["paper"]["millions"] == 3.358
    assert "6T" in capsys.readouterr().out


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


@pytest.mark.slow
def test_weak_scaling_measures_processor_time():
    options = weak_scaling.Options(boards=4, batch=8, iterations=1)
    found = weak_scaling.measure(tiny.config(), options)
    assert found.devices == jax.device_count()
    assert 0 < found.selfplay and 0 < found.learning
