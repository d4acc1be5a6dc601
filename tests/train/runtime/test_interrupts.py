"""Signals: what a first and a second one do."""

import signal
import subprocess
import sys
import time

import pytest

from train.runtime import interrupts as interrupts_lib
from train.runtime.interrupts import interrupts

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1]


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
    assert shown == ["stopping: it is saved (Ctrl-C again to drop it)"]
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("number", "handler"),
    [
        (signal.SIGHUP, signal.SIG_IGN),  # as `nohup` starts a process
        (signal.SIGUSR1, signal.SIG_IGN),
        (signal.SIGUSR1, lambda signum, frame: None),  # a launcher's, which queues the job again
    ],
)
def test_what_others_have_set_stays(number, handler):
    before = signal.signal(number, handler)
    try:
        with interrupts("it is saved", has_work=True) as request:
            signal.raise_signal(number)
            assert not request()
        assert signal.getsignal(number) == handler
    finally:
        signal.signal(number, before)


def test_the_inner_of_two_requests_gets_a_signal():
    with interrupts("the run is saved", has_work=True) as outer:
        with interrupts("it is saved", has_work=True) as inner:
            signal.raise_signal(signal.SIGUSR1)
        assert inner() and not outer()
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL


SAVING = """
import sys, time
from train.runtime.interrupts import interrupts
with interrupts("the rest is saved", has_work=True) as request:
    print("busy", flush=True)
    while not request():
        time.sleep(0.1)
    time.sleep(0.5)
    print("saved", flush=True)
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_process_saves(number):
    process = subprocess.Popen(
        [sys.executable, "-c", SAVING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    for _ in range(3):
        process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines() == [
        "stopping: the rest is saved (Ctrl-C again to drop it)",
        "saved",
    ]
