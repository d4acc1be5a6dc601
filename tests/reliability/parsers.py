"""Gives each parser 100,000 generated inputs: none may crash it, hang it or fill the memory."""

import asyncio
import functools
import gzip
import json
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.learner import tiny
from tests.support.learner.engines import sessions_of
from train.config import read_config
from train.engine.options import EngineOptions
from train.engine.protocol import Protocol
from train.players.names import read_name
from wallgo_jax import notation
from wallgo_jax.formats import diagram, hkoi_code, records
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.view.game_replay import replay_actions

INPUTS = 100_000
LONGEST = 10.0
"""Seconds after which an input hangs its parser."""
MOST_MEMORY = 2**30
_ROOT = Path(__file__).parents[1]
_CHARACTERS = "ABCDEFGRYabgry0123456789=+-|.:,;#>W_{}[]\"'\\/@?& \t\n\r\x0b\x00é²٣\u2028"
_WORDS = ("null", "NaN", "-1", "1e999", "9" * 40, "true", "[]", "{}", '""', "[[[[", "é", "\ud83e")


class Parser(NamedTuple):
    """What reads a text, and texts that it takes."""

    read: Callable[[str], Any]
    valid: Sequence[str]


def mutate(draw: random.Random, valid: Sequence[str]) -> str:
    """A text with one to four changes, or a tenth of the time random bytes."""
    if draw.random() < 0.1:
        return draw.randbytes(draw.randint(0, 60)).decode("utf-8", "surrogateescape")
    text = draw.choice(valid)
    for _ in range(draw.randint(1, 4)):
        at = draw.randint(0, len(text))
        end = min(len(text), at + draw.randint(1, 4))
        some = "".join(draw.choices(_CHARACTERS, k=draw.randint(1, 2)))
        other = draw.choice(valid)
        text = draw.choice(
            (
                text[:at] + text[end:],
                text[:at] + some + text[end:],
                text[:at] + some + text[at:],
                text[:end] + text[at:],
                text[:at] + draw.choice(_WORDS) + text[end:],
                text[:at] + other[draw.randint(0, len(other)) :],
                text[:at] + chr(ord(text[at]) ^ (1 << draw.randint(0, 7))) + text[at + 1 :]
                if at < len(text)
                else text[:-1],
            )
        )
    return text


def _games() -> list[Any]:
    """A short game of each rule set."""
    games = {}
    with gzip.open(_ROOT / "data" / "conformance.jsonl.gz", "rt") as lines:
        for line in lines:
            game = json.loads(line)
            rules = PRESETS.get(game["variant"])
            if rules is None:
                continue  # rules of one's own
            some = game["actions"][: len(rules.order) + 3]
            games.setdefault(game["variant"], replay_actions(rules, some))
    return list(games.values())


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
    games = _games()
    hkoi = next(game for game in games if game.rules == PRESETS["hkoi"])
    human = [
        "\n".join(
            notation.format_action(action, grid=7, player=player)
            for action, player in zip(game.actions, game.movers, strict=True)
        )
        for game in games
    ]
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
    return {
        "notation": Parser(functools.partial(notation.parse_moves, grid=7), human),
        "HKOI codes": Parser(hkoi_code.decode, [hkoi_code.encode(hkoi)]),
        "records": Parser(
            lambda text: records.replay(records.from_json(text)),
            [records.to_json(records.of_game(game)) for game in games],
        ),
        "player names": Parser(read_name, names),
        "rules": Parser(read_rules, rules),
        "TOML configs": Parser(read_toml, [tiny.PATH.read_text(), *tables]),
        "engine lines": Parser(_engine_reader(), _requests(hkoi)),
        "diagrams": Parser(diagram.parse, [diagram.draw(game.states[-1]) for game in games]),
    }


def feed(parser: Parser, inputs: int, seed: int) -> dict[str, Any]:
    """Feed a parser, and return how many inputs it refused, its slowest, and its failures."""
    draw, refused, slowest, failures = random.Random(seed), 0, 0.0, []
    began = time.monotonic()
    for _ in range(inputs):
        text = mutate(draw, parser.valid)
        start = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, LONGEST)
        try:
            parser.read(text)
        except ValueError as error:
            refused += 1  # a UsageError is one
            message = str(error)
            if not message.strip() or len(message.splitlines()) != 1:
                failures.append({"input": text, "message": message})
            elif type(error).__name__ in ("UnicodeEncodeError", "UnicodeDecodeError"):
                failures.append({"input": text, "message": repr(error)})
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
