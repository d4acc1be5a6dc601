"""What is compiled ahead of its call, and in which processes."""

import threading

import pytest

from train.runtime import ahead
from train.runtime.ahead import compile_ahead, compile_together, is_compiling_ahead


@pytest.fixture
def allowed(monkeypatch):
    monkeypatch.setattr(ahead, "_is_allowed", True)
    monkeypatch.setattr(ahead, "_threads", [])


def test_only_a_command_compiles_in_other_threads():
    done = []
    compile_ahead([lambda: done.append("ahead")])
    assert not is_compiling_ahead() and done == []
    assert set(compile_together([threading.get_ident] * 3)) == {threading.get_ident()}


def test_jobs_ahead_are_done_in_order_until_one_fails(allowed):
    done, begun = [], threading.Event()

    def fail():
        raise ValueError("no memory")

    compile_ahead([begun.wait, lambda: done.append(threading.get_ident()), fail, done.clear])
    assert is_compiling_ahead() and done == []
    begun.set()
    ahead._threads[0].join(10)
    assert not is_compiling_ahead()
    assert len(done) == 1 and done != [threading.get_ident()]


def test_jobs_together_return_in_order_and_raise(allowed):
    together = threading.Barrier(2, timeout=10)
    assert compile_together([lambda: (together.wait(), 1)[1], lambda: (together.wait(), 2)[1]]) == [
        *(1, 2)
    ]
    with pytest.raises(ZeroDivisionError):
        compile_together([lambda: 1, lambda: 1 // 0])
