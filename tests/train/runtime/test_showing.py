"""Errors of showing: the work goes on, a line says what was lost."""

import io
import sys

import pytest

from train.runtime.display import Display
from train.runtime.errors import UsageError
from train.runtime.files import CannotWriteError
from train.runtime.showing import is_unwritten, sparing, sparing_output, tell

FULL = "No space left on device"


@pytest.fixture
def full():
    """A stream to a disk that is full."""
    stream = open("/dev/full", "w")
    yield stream
    try:
        stream.close()
    except OSError:
        pass


def test_what_a_full_disk_does_not_take_goes_to_standard_error(full, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", full)
    with Display(total=2) as display:
        display.say("first")
        display.show(1, {"iteration": 1})
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == f"/dev/full: cannot be written: {FULL}; what it does not take is shown here"
    assert rest == ["first", "iteration 1: -:--:-- left"]


def test_where_nothing_can_be_written_the_work_goes_on_in_silence(full, monkeypatch):
    monkeypatch.setattr(sys, "stdout", full)
    monkeypatch.setattr(sys, "stderr", full)
    with sparing_output() as output:
        print("table")
        print("error", file=sys.stderr)
        tell("line")
    assert output.has_failed
    assert (sys.stdout, sys.stderr) == (full, full)


def test_a_disk_with_room_again_gets_what_comes_then(monkeypatch, capsys):
    class Disk(io.StringIO):
        is_full = True

        def write(self, text):
            if self.is_full:
                raise OSError(28, FULL)
            return super().write(text)

    disk = Disk()
    monkeypatch.setattr(sys, "stdout", disk)
    with sparing_output():
        print("one")
        disk.is_full = False
        print("two")
    assert disk.getvalue() == "two\n"
    assert capsys.readouterr().err.splitlines()[1:] == ["one"]


def test_a_reader_that_has_left_is_no_full_disk(monkeypatch):
    class Pipe(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Pipe())
    with sparing_output(), pytest.raises(BrokenPipeError):
        print("table")


def test_characters_that_an_encoding_lacks(monkeypatch, capsys):
    few = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", few)
    Display().say("7×7")
    assert capsys.readouterr().err.splitlines()[-1] == "7×7"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(28, FULL), f"a.png: {FULL}"),
        (CannotWriteError(f"a.png: cannot be written: {FULL}"), None),
        (UsageError("no\nkey"), "a.png: no key"),
        (ValueError("no font"), "a.png: ValueError: no font"),
    ],
)
def test_a_picture_costs_a_line(error, line, capsys):
    with sparing_output():
        for _ in range(2):
            with sparing("a.png", "the table stands"):
                raise error
        assert is_unwritten() and is_unwritten("a.png") and not is_unwritten("b.png")
    assert capsys.readouterr().err == f"{line or error}; the table stands\n"
    assert not is_unwritten()


def test_an_interrupt_is_no_error_of_showing():
    with pytest.raises(KeyboardInterrupt), sparing("a.png"):
        raise KeyboardInterrupt
