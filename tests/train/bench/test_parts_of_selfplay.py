"""The scripts that compare searches in rounds, and take self-play's time apart."""

import pytest

from tests.support.learner import tiny
from train.bench.harness.script import run_configured_script
from train.bench.harness.timing import Row
from train.bench.scripts import rounds, selfplay_parts

SMALL = (
    *("--repeats", "1", "--seconds", "0.01"),
    *("--rules", '{"size": 3, "stones": 1, "order": [0, 1]}'),
    *("--network.width", "8", "--network.value_width", "8", "--search.simulations", "2"),
    *("--selfplay.plies", "2", "--selfplay.cheap_simulations", "1"),
    *("--search.prior_boost", '["stay=2"]'),
)


def test_parts_add_up_to_the_whole():
    times = [10.0, 9.0, 3.0, 2.0, 0.5, 6.0]
    parts = dict(selfplay_parts.parts_of(times))
    assert sum(parts.values()) == pytest.approx(times[0])
    assert parts["network"] == 6.0 and parts["planes"] == 1.0


def test_network_calls_of_a_search():
    assert rounds.steps_of(16, 16) == (17, 2)
    assert rounds.steps_of(16, 64) == (65, 16)


def test_both_searches_are_those_that_are_named():
    for found in (False, True):
        config = rounds.with_rounds(tiny.config(), found)
        assert config.search.rounds is found and config.selfplay.full_search_prob == 1


@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        (rounds, ("--search.kind", "puct"), "rounds: needs search.kind gumbel"),
        (rounds, ("--rules", "hkoi,wallzero-empty"), "rounds: rules must be one rule set"),
        (selfplay_parts, ("--rules", "hkoi,wallzero-empty"), "selfplay_parts: rules must be one"),
    ],
)
def test_what_cannot_be_compared_is_told_in_one_line(script, words, said, capsys, monkeypatch):
    monkeypatch.setattr(script, "use_all_cores", lambda: None)
    name = script.__name__.rpartition(".")[2]
    with pytest.raises(SystemExit) as stopped:
        run_configured_script(script.main, script.Options, name=name, arguments=[*words])
    assert stopped.value.code == 2 and said in capsys.readouterr().err


def test_a_move_counts_its_root():
    row = Row("x", 8, 1, (1.0,), {"moves": 1000.0, "simulations": 16e3}, 0, None)
    assert selfplay_parts.microseconds(row, 16) == pytest.approx(1e6 / 17e3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        (selfplay_parts, ("--boards", "8"), "self-play over it"),
        (rounds, ("--boards", "8", "--simulations", "4"), "one move, 4 simulations"),
    ],
)
def test_a_small_version_prints_its_table(script, words, said, capsys, monkeypatch):
    monkeypatch.setattr(script, "use_all_cores", lambda: None)  # JAX has begun already
    name = script.__name__.rpartition(".")[2]
    run_configured_script(script.main, script.Options, name=name, arguments=[*words, *SMALL])
    assert said in " ".join(capsys.readouterr().out.split())
