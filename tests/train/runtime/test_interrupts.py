"""Signals: what a first and a second one do, also while the main thread is busy."""

import os
import signal
import subprocess
import sys
import time

import pytest

from train.runtime import interrupts as interrupts_lib
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def hangups_end_a_process_again():
    # Also where the tests run under nohup, which ignores them.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def no_time_together(monkeypatch):
    """Signals in close succession are requests of their own."""
    monkeypatch.setattr(interrupts_lib, "TOGETHER", 0.0)


# A busy main thread, as one in a compiler: no Python runs in it, but other threads run.
BUSY = """
import ctypes, signal, sys
from train.runtime import interrupts as lib
lib.PATIENCE, lib.TOGETHER = 0.5, 0.2
libc = ctypes.CDLL(None)
has_work, seconds = sys.argv[1] == "work", int(sys.argv[2])
try:
    with lib.interrupts("the rest is saved", has_work=has_work) as request:
        # Other threads get the signals, which would end the sleep.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGHUP])
        print("busy", flush=True)
        libc.sleep(seconds)
        print("saved", request(), flush=True)
except KeyboardInterrupt:
    print("ended", flush=True)
"""


def wait_for(is_true) -> None:
    """Give the thread that a signal wakes its time, which a busy machine may stretch."""
    end = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)


def told(capfd) -> str:
    return capfd.readouterr().out


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_with_work_to_keep_is_a_request(number, capfd):
    before = signal.getsignal(number)
    with interrupts("it is saved", has_work=True) as request:
        assert not request()
        signal.raise_signal(number)
        assert request()
        wait_for(lambda: "stopping: it is saved (Ctrl-C again to drop it)\n" in told(capfd))
    assert signal.getsignal(number) == (signal.SIG_IGN if number == signal.SIGHUP else before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_request_ends_at_once(number, no_time_together):
    with interrupts("it is saved", has_work=True), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(number)


@pytest.mark.parametrize(
    "numbers",
    [
        (signal.SIGHUP, signal.SIGHUP, signal.SIGHUP),
        (signal.SIGTERM, signal.SIGTERM),
        (signal.SIGTERM, signal.SIGHUP),
    ],
)
def test_signals_in_close_succession_are_one_request(numbers):
    """As a terminal sends them that closes, `timeout`, and the end of a session."""
    with interrupts("it is saved", has_work=True) as request:
        for number in numbers:
            signal.raise_signal(number)
        time.sleep(0.1)
        assert request()


def test_a_hangup_never_asks_to_drop_the_work(no_time_together):
    with interrupts("it is saved", has_work=True) as request:
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.1)
        signal.raise_signal(signal.SIGHUP)
        assert request()


def test_without_work_the_first_ends_at_once():
    with interrupts("it is saved") as request:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert request()


def test_the_text_can_be_shown_elsewhere(capfd):
    shown = []

    def show(text):
        shown.append(text)
        return True

    with interrupts("it is saved", show=show, has_work=True):
        signal.raise_signal(signal.SIGINT)
        wait_for(lambda: shown)
    assert shown == ["stopping: it is saved (Ctrl-C again to drop it)"]
    assert capfd.readouterr().out == ""


def test_an_ignored_hangup_stays_ignored():
    """As `nohup` starts a process."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts("it is saved") as request:
            signal.raise_signal(signal.SIGHUP)
            assert not request()
    finally:
        signal.signal(signal.SIGHUP, before)


def busy_process(work: str, seconds: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, work, str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    time.sleep(0.3)
    return process


def test_a_busy_process_without_work_ends_soon():
    process = busy_process("nothing", 60)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 10
    assert (process.returncode, out, err) == (EXIT_INTERRUPTED, "", "stopped\n")


def test_a_busy_process_with_work_tells_at_once_and_ends_at_the_second():
    process = busy_process("work", 60)
    assert process.stdout is not None
    os.kill(process.pid, signal.SIGTERM)
    assert process.stdout.readline().startswith("stopping: the rest is saved")
    assert process.poll() is None
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (EXIT_INTERRUPTED, "", "stopped\n")


def test_a_busy_process_with_work_saves():
    process = busy_process("work", 2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1] == "saved True"


class _Finalized:
    """Gets a signal while it is finalized, from where no exception comes out."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def __del__(self) -> None:
        signal.raise_signal(self._number)


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupt_that_python_drops_is_sent_again(number, capfd):
    hook = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), interrupts("unused"):
        found = _Finalized(number)
        del found  # the interrupt is raised in __del__, and dropped
        wait_for(lambda: False)
    assert sys.unraisablehook is hook
    assert "ignored" not in capfd.readouterr().err
