"""Reads the words of a command line and runs the command."""

import dataclasses
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from train.cli.commands import CONFIGURED, GROUPS, OLD_NAMES, PROGRAM, renamed
from train.cli.common.options import EXIT_USAGE
from train.config import RunConfig
from train.runtime.errors import ProcessLostError, UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED, leave
from wallgo_jax.cli.parsing import (
    flushed_output,
    nearest_option,
    open_missing_streams,
    parse,
    program_name,
    refuse_unknown,
)

_NO_BACKEND = "Unable to initialize backend"
"""So JAX's error begins where a platform of JAX_PLATFORMS is not there."""


def main(
    arguments: Sequence[str] | None = None, *, set_up: Callable[[], None] = lambda: None
) -> int:
    """Run a command; returns the exit code.

    Args:
      arguments: the words after the program; those of the process by default.
      set_up: called once the words are understood, before anything is computed.
    """
    try:
        return _main(sys.argv[1:] if arguments is None else arguments, set_up)
    except _ProgramFailedError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return _stopped()


def program() -> None:
    """Run the process's command on all its devices, and leave with the exit code."""
    open_missing_streams()
    try:
        code = _main(sys.argv[1:], _set_up_devices)
    except _ProgramFailedError as error:
        leave(_refuse(str(error)))
    except KeyboardInterrupt:
        leave(_stopped())
    else:
        sys.exit(code)


class _ProgramFailedError(Exception):
    """A program on a device failed for a reason that one line tells."""


def _main(arguments: Sequence[str], set_up: Callable[[], None]) -> int:
    """As `main`, but for Ctrl-C and programs that fail on a device."""
    try:
        with flushed_output():
            run = _read_command(list(arguments))
            set_up()
            return run()
    except UsageError as error:
        return _refuse(str(error))
    except (RuntimeError, MemoryError, AssertionError) as error:
        # A host callback's UsageError comes out of a JAX program as a JaxRuntimeError.
        from train.runtime.host import usage_error_message
        from train.runtime.memory import out_of_memory_message

        complaint = usage_error_message(error) or out_of_memory_message(error)
        if str(error).startswith(_NO_BACKEND):
            complaint = " ".join(str(error).split())
        elif isinstance(error, AssertionError) and _has_no_device():
            complaint = (
                f"JAX_PLATFORMS={os.environ['JAX_PLATFORMS']}: JAX finds no such device here"
            )
        if isinstance(error, ProcessLostError):
            complaint = str(error)
        if complaint is None:
            raise
        raise _ProgramFailedError(complaint) from None
    except BrokenPipeError:
        # The reader has enough; what is still to be flushed goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        from train.runtime.files import complaint_of

        complaint = complaint_of(error)
        if complaint is None:
            raise
        return _refuse(complaint)


def _has_no_device() -> bool:
    """Whether JAX_PLATFORMS names platforms of which JAX has none; it then asserts one."""
    import jax

    try:
        return "JAX_PLATFORMS" in os.environ and not jax.devices()
    except (RuntimeError, AssertionError):
        return True


def _read_command(words: list[str]) -> Callable[[], int]:
    """Read the command line into a command that is ready to run.

    Raises:
      UsageError: in one line, what is wrong with them and what is allowed.
    """
    program = PROGRAM._replace(name=program_name("train", "wallgo-train"))
    if words and words[0] in OLD_NAMES:
        old, words = words[0], renamed(words)
        new = " ".join(words[: len(OLD_NAMES[old])])
        print(f"{program.name} {old} is now {program.name} {new}", file=sys.stderr)
    if words and words[0] in GROUPS:
        group, *words = words
        program = GROUPS[group]._replace(name=f"{program.name} {group}")
    is_configured = bool(words) and words[0] in CONFIGURED
    if is_configured and {"-h", "--help"} & set(words):
        words = [words[0], "--help"]
    elif is_configured:
        _check_resume(words)
        # The config file's place is filled, so that tyro does not take the value of a changed
        # key for it; a file that is named is among the words that tyro does not know.
        words.insert(1, "None")
    try:
        command, unknown = parse(program, words)
        if is_configured:
            path, overrides = _split_config(unknown)
            _check_options(command, overrides)
            return lambda: dataclasses.replace(command, config=path).run(overrides)
        refuse_unknown(command, unknown, program=f"{program.name} {words[0]}")
    except ValueError as error:
        raise UsageError(f"command line: {error}") from None
    return command.run


def _check_resume(words: Sequence[str]) -> None:
    """Refuse `--resume` without the directory that it needs."""
    after = [*words, "--"][words.index("--resume") + 1] if "--resume" in words else ""
    if after.startswith("-"):
        raise UsageError(
            "command line: --resume needs the directory of the run, such as --resume runs/NAME"
        )


def _check_options(command: Any, overrides: Sequence[str]) -> None:
    """Refuse an option that is no key of the config but nearly one of the command's."""
    keys = [field.name for field in dataclasses.fields(RunConfig)]
    for word in overrides:
        key = word.removeprefix("--").partition("=")[0].replace("-", "_")
        if not word.startswith("--") or "." in key or key in keys:
            continue
        near = nearest_option(command, word, also=[f"--{key}" for key in keys])
        if near and near.removeprefix("--") not in keys:
            raise ValueError(f"unknown option {word}; did you mean {near}?")


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


def _refuse(complaint: str) -> int:
    print(f"error: {complaint}", file=sys.stderr)
    return EXIT_USAGE


def _stopped() -> int:
    print("stopped", file=sys.stderr)
    return EXIT_INTERRUPTED


def _set_up_devices() -> None:
    from train.runtime import devices

    devices.set_up()
    # JAX logs the traceback of a callback that fails, and then raises it: once is enough.
    logging.getLogger("jax._src.callback").setLevel(logging.CRITICAL)
