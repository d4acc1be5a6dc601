"""The engine's standard input and output: lines, signals, ends."""

import asyncio
import contextlib
import errno
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import train
from tests.support import compiling
from tests.support.learner import tiny
from train.engine import programs
from train.engine.options import EngineOptions
from train.engine.protocol import MAX_MESSAGE
from train.engine.server import read_lines, serve
from train.engine.sessions import Sessions
from train.players.registry import make_evaluating_player
from train.runtime.errors import UsageError
from train.runtime.memory import Memory


class Echo:
    """Answers with the request, or never."""

    def __init__(self, *, answers: bool = True) -> None:
        self.answers, self.closed = answers, False

    async def answer(self, line):
        await asyncio.sleep(0 if self.answers else 60)
        return {"line": line.decode()}

    def close(self):
        self.closed = True


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_lines_are_split_whatever_the_blocks(block):
    stream = io.BytesIO(b"one\n\ntwo2\ntoo long\nlast")
    found = read_lines(lambda: stream.read(block), longest=4)
    assert [*found] == [b"one", b"two2", None, b"last"]


def served(protocol, data: bytes, *, signum: int | None = None) -> list[dict]:
    """What the server sends for some input, which ends, or stays open until a signal."""
    (ours, theirs), (reader, writer) = os.pipe(), os.pipe()
    os.write(theirs, data)
    if signum is None:
        os.close(theirs)
    else:
        threading.Timer(0.2, os.kill, (os.getpid(), signum)).start()
    try:
        asyncio.run(serve(protocol, read_from=ours, write_to=writer))
    finally:
        os.close(writer)
    with open(reader) as sent:
        return [json.loads(line) for line in sent]


def test_at_the_end_of_input_everything_is_answered():
    protocol = Echo()
    assert served(protocol, b"a\nb\nc") == [{"line": "a"}, {"line": "b"}, {"line": "c"}]
    assert protocol.closed


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_sessions_at_once(signum):
    protocol, ends = Echo(answers=False), contextlib.nullcontext()
    with ends if signum == signal.SIGTERM else pytest.raises(KeyboardInterrupt):
        assert served(protocol, b"a\n", signum=signum) == []
    assert protocol.closed


def test_a_reader_that_has_gone_ends_the_sessions():
    protocol, (ours, theirs) = Echo(), os.pipe()
    os.close(ours)
    data, writing = os.pipe()
    os.write(writing, b"a\n")
    asyncio.run(serve(protocol, read_from=data, write_to=theirs))
    assert protocol.closed


def test_a_full_disk_costs_responses_but_no_session(monkeypatch, caplog):
    (ours, theirs), (reader, writer), write = os.pipe(), os.pipe(), os.write
    room = [7, 0, 0, 100]  # bytes that each write finds

    def write_some(descriptor, data):
        if descriptor != writer:
            return write(descriptor, data)
        if not (most := room.pop(0)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:most])

    os.write(theirs, b"a\nb\nc\n")
    os.close(theirs)
    monkeypatch.setattr(os, "write", write_some)
    asyncio.run(serve(Echo(), read_from=ours, write_to=writer))
    os.close(writer)
    with open(reader) as sent:
        cut, last = sent.read().splitlines()
    assert (cut, json.loads(last)) == ('{"line"', {"line": "c"})
    said = ["a response cannot be written: No space left on device"] * 2
    assert [record.getMessage() for record in caplog.records] == said


def test_input_that_cannot_be_read_ends_the_sessions(tmp_path):
    protocol, descriptor = Echo(), os.open(tmp_path, os.O_RDONLY)

    async def body():
        # A directory can be opened, but not read.
        await asyncio.wait_for(serve(protocol, read_from=descriptor, write_to=2), 20)

    asyncio.run(body())
    os.close(descriptor)
    assert protocol.closed


def engine(*words: str, **environment: str) -> subprocess.Popen[bytes]:
    """An engine of a player that compiles quickly; it ends with its input."""
    command = [sys.executable, "-m", "train", "engine", "heuristic-search:wjx@4", *words]
    return subprocess.Popen(
        [*command, "--rules", json.dumps(tiny.RULES.to_dict()), "--nodes", "64"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=compiling.environment() | environment,
        cwd=compiling.ROOT,
    )


@pytest.mark.slow
def test_an_engine_survives_bad_lines_and_ends_at_ctrl_c():
    with engine("--batch", "1", "--trees", "2") as process:

        def ask(line: bytes) -> dict:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        started = ask(b'{"type": "start_game_session", "bgsId": "g"}')
        assert started["success"], started
        overlong = ask(b"x" * 1_000_000)
        assert overlong["bgsId"] is None and str(MAX_MESSAGE) in overlong["error"]
        assert "JSON" in ask(b"\x00{")["error"]
        told = ask(b'{"type": "evaluate_position", "bgsId": "g"}')
        assert (told["success"], told["simulations"]) == (True, 4)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        out, log = process.communicate()
    assert out == b"" and b"Traceback" not in log and b"engine: ready" in log


@pytest.mark.slow
def test_an_engine_that_still_compiles_ends_at_once():
    sizes = map(str, range(1, 60))
    with engine("--batch", *sizes, "--trees", "64", JAX_ENABLE_COMPILATION_CACHE="0") as process:
        while b"engine: ready" not in process.stderr.readline():
            assert process.poll() is None
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        # All batches take minutes; a busy machine needs seconds to end a process.
        assert time.monotonic() - began < 15
        log = process.communicate()[1].decode()
    assert "Traceback" not in log and "are compiled" not in log


@pytest.mark.parametrize(
    ("options", "word"),
    [({"batch": [0]}, "batch"), ({"batch": [8], "trees": 4}, "trees"), ({"chunk": 0}, "chunk")],
)
def test_bad_options_are_refused(options, word):
    with pytest.raises(UsageError, match=word):
        train.serve_engine("heuristic-search:wjx", **options)


@pytest.mark.parametrize(
    ("player", "trees", "nodes", "word"),
    [
        ("heuristic-search:wjx@64", 64, 1000, "lower `trees=` or `nodes=`"),
        ("heuristic-search:wjx@64", 8, 1000, "lower `nodes=`"),
        ("heuristic-search:wjx@64", 8, 32, "32 nodes"),
        ("greedy", 8, 32, "greedy"),
    ],
)
def test_trees_and_players_that_do_not_fit_are_refused(monkeypatch, player, trees, nodes, word):
    # Other devices of this host do not hold the trees.
    monkeypatch.setattr(programs, "device_memory", lambda: Memory("this host", 2**20, 64))
    options = EngineOptions(batch_sizes=(1, 8), nodes=nodes, trees=trees)
    with pytest.raises(UsageError, match=word):
        Sessions(make_evaluating_player(player), tiny.RULES, options)
