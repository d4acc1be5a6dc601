"""The command line: `python -m train run CONFIG` and `python -m train match PLAYER PLAYER`."""

import contextlib
import dataclasses
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import jax
import tyro

from train import arena, loop, metrics, roster
from train.config import read_config
from train.errors import UsageError
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules

EXIT_USAGE, EXIT_INTERRUPTED = 2, 130


@dataclasses.dataclass(frozen=True)
class Run:
    """Train from a config, evaluate, print the table. Any key of the config can be changed:
    --some.key value."""

    config: tyro.conf.Positional[Path | None] = None
    """TOML file of the run; without one, the quickstart that the program holds."""
    resume: bool = False
    """Go on from the newest checkpoint of the run."""
    runs: Path = Path("runs")
    """Directory of all runs."""


@dataclasses.dataclass(frozen=True)
class Match:
    """Play a match between two players: random, greedy, net:RUN, search:RUN@simulations."""

    first: tyro.conf.Positional[str]
    """Player whose side the result takes."""
    second: tyro.conf.Positional[str]
    """Its opponent."""
    rules: str = "wallzero-4stone"
    """Name of a preset, or custom rules as a JSON object."""
    games: int = 400
    """How many, half of them with each colour."""
    batch: int = 400
    """Games at once."""
    opening_plies: int = 2
    """Random plies that both games of a pair start with."""
    seed: int = 0
    """Of everything random."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    try:
        command, overrides = _parse(list(sys.argv[1:] if arguments is None else arguments))
        return _run(command, overrides) if isinstance(command, Run) else _match(command)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return EXIT_INTERRUPTED


def _parse(arguments: list[str]) -> tuple[Run | Match, list[str]]:
    """The command, and the words that change keys of the config."""
    overrides: list[str] = []
    if arguments[:1] == ["run"]:
        arguments, overrides = _set_overrides_apart(arguments)
    commands = (
        Annotated[Run, tyro.conf.subcommand("run")]
        | Annotated[Match, tyro.conf.subcommand("match")]
    )
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            command = tyro.cli(
                commands,  # pyright: ignore[reportArgumentType]
                prog="python -m train",
                args=arguments,
            )
    except SystemExit as error:
        if error.code in (0, None):
            raise
        raise UsageError(_in_one_line(complaint.getvalue())) from None
    return command, overrides


def _set_overrides_apart(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Options of `run` itself, and every other option with its value."""
    own = ("--resume", "--no-resume", "--runs", "--help")
    kept, overrides, rest = [], [], list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word.partition("=")[0] in own:
            kept.append(word)
            continue
        overrides.append(word)
        if "=" not in word and rest:
            overrides.append(rest.pop(0))
    return kept, overrides


def _in_one_line(box: str) -> str:
    """The first part of a boxed complaint. Parts are parted by rules; the title stands in the upper
    border, or, where the terminal has no borders, in a part of its own."""
    parts: list[list[str]] = [[]]
    for line in box.splitlines():
        text = line.strip("│ ")
        if line.startswith("╭") or not text.strip("─-╰╯"):
            parts.append([])
        else:
            parts[-1].append(text)
    filled = [" ".join(part) for part in parts if part]
    body = filled if "╭" in box else filled[1:]
    return f"command line: {body[0] if body else 'see --help'}"


def _run(command: Run, overrides: list[str]) -> int:
    config = read_config(command.config, overrides)
    finished = loop.train(config, command.runs, resume=command.resume)
    return 0 if finished else EXIT_INTERRUPTED


def _match(command: Match) -> int:
    rules = _read_rules(command.rules)
    try:
        arena.check_match(
            rules, games=command.games, batch=command.batch, opening_plies=command.opening_plies
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not 0 <= command.seed < 2**31:
        raise UsageError(f"match: seed ({command.seed}) must be from 0 to 2147483647")
    first, second = (roster.make_player(name, rules) for name in (command.first, command.second))
    display = metrics.Display()
    with display, display.match(f"{first.name} against {second.name}", command.games) as tick:
        result = arena.play_match(
            first,
            second,
            rules,
            games=command.games,
            key=jax.random.key(command.seed),
            batch=command.batch,
            opening_plies=command.opening_plies,
            on_progress=tick,
        )
    caption = f"seed {command.seed} · {command.opening_plies} random opening plies"
    display.console.print(metrics.match_table([result], caption=caption))
    return 0


def _read_rules(text: str) -> Rules:
    try:
        fields = json.loads(text) if text.startswith("{") else None
        return rules_lib.named(text) if fields is None else Rules.from_dict(fields)
    except ValueError as error:
        raise UsageError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
