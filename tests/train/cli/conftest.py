"""A finished tiny run, which commands read, copy or go on with; made-up games of pools."""

import shutil
from pathlib import Path

import pytest

from tests.support.learner import matches, tiny
from tests.support.learner.commands import CONFIG, RULES, Said, command
from train.ratings import pool


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def finished(runs) -> tuple[Path, Said]:
    """A finished run: its directory and its command's output."""
    return runs / CONFIG.name, command("run", tiny.PATH, "--runs", runs)


@pytest.fixture
def matched(finished) -> list[str]:
    """The words of a match whose program the finished run has compiled, all but its games."""
    own = ["--rules", RULES, "--batch", "20", "--seed", "4", "--opening-plies", "0"]
    return ["match", f"search:{finished[0]}@2", "random", *own]


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    """A directory of runs with a copy of the finished run, to be changed."""
    shutil.copytree(finished[0], tmp_path / CONFIG.name)
    return tmp_path


@pytest.fixture
def plays(monkeypatch):
    """The batches that pools ask for; the first player wins two games of four. The batch after
    `plays.most` is interrupted."""

    class Plays(list):
        most = 10**6

    found = Plays()

    def make_play(rules, *, games, **options):
        def play(seated, number):
            if len(found) == found.most:
                raise KeyboardInterrupt
            found.append(tuple(entrant.name for entrant in seated))
            if len(seated) > 2:
                return matches.at_table(found[-1], rules, games)
            return matches.of_two(*found[-1], rules, [1, -1, 0, 1] * (games // 4))

        return play

    monkeypatch.setattr(pool, "make_play", make_play)
    return found
