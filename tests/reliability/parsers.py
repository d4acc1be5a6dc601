"""Gives each parser 100,000 generated inputs: none may crash it, hang it or fill the memory."""

import asyncio
import functools
import json
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.game.texts import Parser, beginnings, changed, is_refused, parsers_of_game
from tests.support.learner import tiny
from tests.support.learner.engines import sessions_of
from train.config import read_config
from train.engine.options import EngineOptions
from train.engine.protocol import Protocol
from train.players.names import read_name
from wallgo_jax import notation

INPUTS = 100_000
LONGEST = 10.0
"""Seconds after which an input hangs its parser."""
MOST_MEMORY = 2**30
_ROOT = Path(__file__).parents[1]


def _requests(game: Any) -> list[str]:
    """Lines that an engine takes."""
    moves = [
        notation.format_action(action, grid=game.rules.size, player=player)
        for action, player in zip(game.actions, game.movers, strict=True)
    ]
    kinds = (
        {"type": "start_game_session", "bgsId": "a", "rules": game.rules.to_dict(), "moves": moves},
        {"type": "start_game_session", "bgsId": "a", "rules": "hkoi"},
        {"type": "apply_move", "bgsId": "a", "expectedPly": 0, "move": moves[0]},
        {"type": "evaluate_position", "bgsId": "b", "expectedPly": 1, "simulations": 1},
        {"type": "end_game_session", "bgsId": "a"},
    )
    return [json.dumps(kind) for kind in kinds]


@functools.cache
def _protocol() -> Protocol:
    return Protocol([sessions_of(tiny.RULES, "gumbel", EngineOptions())])


def _engine_reader() -> Callable[[str], Any]:
    loop = asyncio.new_event_loop()

    def read(text: str) -> None:
        line = text.encode("utf-8", "surrogatepass")
        response = loop.run_until_complete(_protocol().answer(line))
        told = response["error"]
        assert not told.startswith("internal error"), told
        if not response["success"]:
            raise ValueError(told)

    return read


def parsers(out: Path) -> dict[str, Parser]:
    """Every parser with valid texts."""
    config = out / "config.toml"

    def read_toml(text: str) -> Any:
        config.write_bytes(text.encode("utf-8", "surrogatepass"))
        return read_config(config)

    def read_rules(text: str) -> Any:
        return read_config(tiny.PATH, ["--rules", text])

    names = ["random", "greedy", "runs/cpu@64", "search:runs/a@0.5s?symmetries=8"]
    names += ["pretrained:wallzero-4stone@64", "external:gnugo --mode gtp", "policy:runs/x"]
    rules = ["hkoi", "hkoi=2,wallzero-empty", '["hkoi", {"rules": "wallzero-empty", "weight": 2}]']
    rules += ['{"size": 5, "stones": 2, "order": [0, 1, 0, 1]}', "{size = 5, stones = 2}"]
    tables = [path.read_text() for path in sorted(_ROOT.parent.glob("configs/*.toml"))]
    return parsers_of_game() | {
        "player names": Parser(read_name, names, _accept),
        "rules": Parser(read_rules, rules, _accept),
        "TOML configs": Parser(read_toml, [tiny.PATH.read_text(), *tables], _accept),
        "engine lines": Parser(_engine_reader(), _requests(beginnings()["hkoi"]), _accept),
    }


def _accept(value: object) -> None:
    """Take any value."""


def feed(parser: Parser, inputs: int, seed: int) -> dict[str, Any]:
    """Feed a parser, and return how many inputs it refused, its slowest, and its failures."""
    draw, refused, slowest, failures = random.Random(seed), 0, 0.0, []
    began = time.monotonic()
    for _ in range(inputs):
        text = changed(draw, parser.valid)
        start = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, LONGEST)
        try:
            refused += is_refused(parser.read, text, parser.check)  # a UsageError is a ValueError
        except BaseException:
            failures.append({"input": text, "traceback": traceback.format_exc()})
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        slowest = max(slowest, time.monotonic() - start)
    return {
        "inputs": inputs,
        "refused": refused,
        "slowest_ms": round(1000 * slowest, 1),
        "seconds": round(time.monotonic() - began),
        "failures": failures[:20],
        "failed": len(failures),
    }


def _hangs(*args: object) -> None:
    raise TimeoutError("the parser hangs")


def main() -> int:
    """Feed all parsers, or those that are named; returns the exit code."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m tests.reliability.parsers OUT [INPUTS [PARSER ...]]")
    out = Path(sys.argv[1])
    inputs = int(sys.argv[2]) if len(sys.argv) > 2 else INPUTS
    out.mkdir(parents=True)
    signal.signal(signal.SIGALRM, _hangs)
    found: dict[str, Any] = {}
    made = {name: parser for name, parser in parsers(out).items() if name in (sys.argv[3:] or name)}
    if "engine lines" in made:
        _protocol()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # JAX and a compiled engine
    for name, parser in made.items():
        found[name] = feed(parser, inputs, seed=0)
        shown = {key: value for key, value in found[name].items() if key != "failures"}
        print(name, json.dumps(shown), flush=True)
        added = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        found["memory that was added, in MiB"] = round(added / 2**20)
        (out / "figures.json").write_text(json.dumps(found, indent=2) + "\n")
    print(f"memory that was added: {added / 2**20:.0f} MiB")
    failed = sum(part["failed"] for part in found.values() if isinstance(part, dict))
    return 1 if failed or added > MOST_MEMORY else 0


if __name__ == "__main__":
    sys.exit(main())
