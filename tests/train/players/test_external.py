"""A program ends with the player that it serves."""

import gc
import shlex
import sys

import pytest

from train.players.external import make_external_player


@pytest.fixture
def program(tmp_path) -> str:
    """Reads until its input ends; starts without `site`, which takes long."""
    path = tmp_path / "program.py"
    path.write_text("import sys\nfor line in sys.stdin: pass\n", encoding="utf-8")
    return f"{shlex.quote(sys.executable)} -I -S {shlex.quote(str(path))}"


def test_a_program_ends_once_nobody_has_its_player(program):
    player = make_external_player(program)
    process = player.act.program()._process
    assert process.poll() is None
    del player
    gc.collect()
    assert process.poll() == 0


def test_a_player_that_is_closed_can_start_its_program_again(program):
    act = make_external_player(program).act
    first = act.program()
    act.close()
    assert first.has_failed and not act._end.alive
    second = act.program()
    assert second is not first and not second.has_failed
    act.close()
    assert second.has_failed
