"""The commands by the names that users type; reads the words of a command line and runs one."""

import dataclasses
import functools
import itertools
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from train.api.verbs import VERBS
from train.cli import options
from train.cli.commands import command_of
from train.config import RunConfig, key_paths
from train.runtime import files, watching
from train.runtime.ahead import allow_compiling_ahead, is_compiling_ahead
from train.runtime.errors import ProcessLostError, UsageError, one_line
from train.runtime.interrupts import EXIT_INTERRUPTED, leave
from train.runtime.showing import drop_unwritten, is_unwritten, sparing_output, tell
from wallgo_jax.cli.parsing import (
    Program,
    flushed_output,
    open_missing_streams,
    parse,
    program_name,
)
from wallgo_jax.formats.near_names import did_you_mean
from wallgo_jax.formats.option_names import in_options

PROGRAM = Program(
    name="python -m train",
    description="Train WallGo players and measure them.",
    groups={
        group: {word: functools.partial(command_of, word) for word in words}
        for group, words in itertools.groupby(VERBS, key=lambda word: VERBS[word].group)
    },
    examples=(
        "run",
        "run configs/cpu.toml --seed 1 --network.width 64",
        "run --resume runs/cpu",
        "match search:runs/quickstart@64 wjx --games 400",
    ),
    examples_of={word: verb.examples for word, verb in VERBS.items()},
)
CONFIGURED = ("run", "fit", "config", "bench")
"""Commands that read a config, and so take `--some.key value`."""
KEPT_IN_FILES = ("run", "fit")
"""Commands whose results lie in files: they succeed where only what they show is lost."""

_NO_BACKEND = "Unable to initialize backend"
"""So JAX's error begins where a platform of JAX_PLATFORMS is not there."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code.

    Args:
      arguments: the words after the program; those of the process by default.
    """
    return _run(sys.argv[1:] if arguments is None else arguments, lambda command: command.run())[0]


def program() -> None:
    """Run the process's command on all its devices, and leave with the exit code."""
    open_missing_streams()
    watching.end_with_watcher()
    try:
        code, is_at_work = _run(sys.argv[1:], _start)
    except Exception:
        if not (is_compiling_ahead() or watching.is_watched()):
            raise
        traceback.print_exc()
        code, is_at_work = 1, True
    drop_unwritten(sys.stdout)
    drop_unwritten(sys.stderr)
    if is_at_work or is_compiling_ahead():
        leave(code)
    sys.exit(code)


class Command(NamedTuple):
    """A command whose words are understood; both calls return the exit code."""

    run: Callable[[], int]
    watch: Callable[[], int] | None  # run it in a child; None for what needs no watcher


def _run(arguments: Sequence[str], start: Callable[[Command], int]) -> tuple[int, bool]:
    """Have `start` run a command once its words are understood; returns the exit code, and whether
    a device, or another process of a distributed run, may still be at work."""
    try:
        with sparing_output() as output, flushed_output():
            code = start(_read_command(list(arguments)))
            has_failed = output.has_failed and arguments[0] not in KEPT_IN_FILES
            return code or (options.EXIT_USAGE if has_failed or is_unwritten() else 0), False
    except SystemExit as stop:  # a help page, or a report of tyro
        return options.EXIT_USAGE if stop.code else 0, False
    except KeyboardInterrupt as stop:
        tell(f"stopped: {stop}" if str(stop) else "stopped")
        return EXIT_INTERRUPTED, True
    except BrokenPipeError:
        # The reader has enough; what is still to be flushed goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0, False
    except Exception as error:
        complaint = _complaint_of(error)
        if complaint is None:
            raise
        if not (isinstance(error, ProcessLostError) and watching.last_words(complaint)):
            tell(f"error: {in_options(_as_typed(complaint, arguments))}")
        is_at_work = isinstance(error, RuntimeError | MemoryError | AssertionError)
        return options.EXIT_USAGE, is_at_work or watching.is_watched()


def _as_typed(complaint: str, arguments: Sequence[str]) -> str:
    """A complaint that begins with the word that was typed, not with its function's name."""
    word = next(iter(arguments), "")
    start = f"{VERBS[word].name}: " if word in VERBS else ""
    is_named = bool(start) and complaint.startswith(start)
    return f"{word}: {complaint.removeprefix(start)}" if is_named else complaint


def _complaint_of(error: Exception) -> str | None:
    """A line for an error that lies with the input or the machine, else None."""
    if isinstance(error, UsageError | ProcessLostError):
        return str(error)
    if isinstance(error, OSError):
        return files.complaint_of(error)
    if not isinstance(error, RuntimeError | MemoryError | AssertionError):
        return None
    from train.runtime.host import usage_error_message
    from train.runtime.memory import out_of_memory_message

    if str(error).startswith(_NO_BACKEND):
        return one_line(error)
    if isinstance(error, AssertionError) and _has_no_device():
        return f"JAX_PLATFORMS={os.environ['JAX_PLATFORMS']}: JAX finds no such device here"
    # A host callback's UsageError comes out of a JAX program as a JaxRuntimeError.
    return usage_error_message(error) or out_of_memory_message(error)


def _has_no_device() -> bool:
    """Whether JAX_PLATFORMS names platforms of which JAX has none; it then asserts one."""
    import jax

    try:
        return "JAX_PLATFORMS" in os.environ and not jax.devices()
    except (RuntimeError, AssertionError):
        return True


def _read_command(words: list[str]) -> Command:
    """Read the command line into a command that is ready to run.

    Raises:
      UsageError: there is no such command, or no such key of the config.
    """
    program = PROGRAM._replace(name=program_name("train", "wallgo-train"))
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    is_configured = bool(words) and words[0] in CONFIGURED
    if is_configured and not {"-h", "--help"} & {*words}:
        # The config file's place is filled, so that tyro does not take the value of a changed
        # key for it; a file that is named is among the words that tyro does not know.
        words.insert(1, "None")
    try:
        command, unknown = parse(program, words, open_ended=CONFIGURED)
    except ValueError as error:
        raise UsageError(f"command line: {error}") from None
    overrides = []
    if is_configured:
        path, overrides = _split_config(unknown)
        _check_keys(command, overrides)
        command = dataclasses.replace(command, config=path)
    options.check(command)
    if not is_configured:
        return Command(command.run, None)
    is_one_of_several = getattr(command, "distributed", False)
    watch = functools.partial(command.watch, overrides) if is_one_of_several else None
    return Command(functools.partial(command.run, overrides), watch)


def _check_keys(command: Any, overrides: Sequence[str]) -> None:
    """Refuse a word that is neither a key of the config nor an option of the command."""
    keys = [field.name for field in dataclasses.fields(RunConfig)]
    known = [field.name.replace("_", "-") for field in dataclasses.fields(command)]
    for word in overrides:
        key = word.removeprefix("--").partition("=")[0].replace("-", "_")
        if word.startswith("--") and key.partition(".")[0] not in keys:
            hint = did_you_mean(key, (*known, *key_paths()), prefix="--")
            raise UsageError(f"command line: unknown option {word}{hint}")


def _split_config(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The config file, if one is named, and the options that change keys of the config."""
    path, overrides, rest = None, [], list(words)
    while rest:
        word = rest.pop(0)
        if path is None and not word.startswith("-"):
            path = Path(word)
            continue
        overrides.append(word)
        # What begins with -- is no value: the config's reader tells that it is missing.
        if word.startswith("--") and "=" not in word and rest and not rest[0].startswith("--"):
            overrides.append(rest.pop(0))
    return path, overrides


def _start(command: Command) -> int:
    """Run a command with the settings of a process of its own."""
    if command.watch is not None and watching.CAN_WATCH and not watching.is_watched():
        return command.watch()
    _set_up_devices()
    return command.run()


def _set_up_devices() -> None:
    from train.runtime import devices

    devices.set_up()
    allow_compiling_ahead()
    # JAX logs the traceback of a callback that fails, and then raises it: once is enough.
    logging.getLogger("jax._src.callback").setLevel(logging.CRITICAL)
