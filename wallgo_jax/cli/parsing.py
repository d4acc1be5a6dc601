"""Command lines read by tyro."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import docstring_parser
import tyro

from wallgo_jax._version import __version__
from wallgo_jax.cli import help_page
from wallgo_jax.formats.docstrings import docstring_of
from wallgo_jax.formats.near_names import did_you_mean

_HELP = ("-h", "--help")

Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
"""An option without a value; its help page does not say that it is off unless it is given."""


Command = type | Callable[[], type]


class Program(NamedTuple):
    """A program of several commands.

    Attributes:
      name: what users type before a command.
      description: what it is for, in one sentence.
      groups: dataclasses with tyro's annotations by the names that users type, under the titles of
        the help page; or functions that give them, called when they are chosen.
      examples: lines to type after the program's name, for the program's own help page.
      examples_of: likewise, for the help page of each command.
    """

    name: str
    description: str
    groups: Mapping[str, Mapping[str, Command]]
    examples: Sequence[str] = ()
    examples_of: Mapping[str, Sequence[str]] = MappingProxyType({})

    @property
    def places(self) -> dict[str, Command]:
        """Classes, or what gives them, by the names that users type."""
        return {name: place for group in self.groups.values() for name, place in group.items()}

    @property
    def commands(self) -> dict[str, type]:
        """All commands by the names that users type."""
        return {name: load(place) for name, place in self.places.items()}


def load(command: Command) -> type:
    """A command's class."""
    return command if isinstance(command, type) else command()


@contextlib.contextmanager
def flushed_output() -> Iterator[None]:
    """Write what is printed out at the end, also of a help page, rather than when Python exits.

    Raises:
      BrokenPipeError: the reader has left, as `head` does.
    """
    try:
        yield
    finally:
        sys.stdout.flush()


def open_missing_streams() -> None:
    """Open the null device in place of each standard stream that the process was started without,
    as after `>&-`; and let no character end a command that the output's encoding lacks."""
    # In the order of their numbers: a file takes the lowest number that is free.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def program_name(module: str, script: str) -> str:
    """What users type to start this process's program: its script or `python -m MODULE`."""
    return script if Path(sys.argv[0]).stem == script else f"python -m {module}"


def parse(
    program: Program, words: Sequence[str], *, open_ended: Container[str] = ()
) -> tuple[Any, list[str]]:
    """The command that the words choose, and the words that it does not know.

    `--help` and `--version` print and leave by SystemExit(0); words that tyro cannot read leave by
    SystemExit(2), after tyro has printed what is wrong.

    Args:
      program: its commands.
      words: the command line without the program.
      open_ended: names of commands that take words which are none of their options.

    Raises:
      ValueError: there is no such command; which there are.
    """
    places = program.places
    if words and words[0] == "help":
        words = [*words[1:2], "--help"]
    first = words[0] if words else ""
    if "--version" in words[:2]:
        print(_version())
        raise SystemExit(0)
    if first in _HELP:
        groups = {
            title: {name: _first_sentence(load(kind)) for name, kind in group.items()}
            for title, group in program.groups.items()
        }
        help_page.print_program(program.name, program.description, groups, program.examples)
        raise SystemExit(0)
    if first not in places:
        what = f"unknown command {first!r}" if first else "no command"
        raise ValueError(
            f"{what}{did_you_mean(first, places)}; commands: {', '.join(places)}; "
            f"see {program.name} --help"
        )
    command = load(places[first])
    try:
        return read(
            command,
            words[1:],
            program=f"{program.name} {first}",
            is_open_ended=first in open_ended,
        )
    except SystemExit as stop:
        if not stop.code:
            help_page.print_examples(program.name, program.examples_of.get(first, ()))
        raise


def read(
    options: Any, words: Sequence[str], *, program: str, is_open_ended: bool = False
) -> tuple[Any, list[str]]:
    """The options that the words give, and the words that are none of them.

    `--help` prints the options' help and leaves by SystemExit(0); words that tyro cannot read leave
    by SystemExit(2), after tyro has printed what is wrong.

    Args:
      options: a dataclass with tyro's annotations.
      words: the command line without the program.
      program: what the user types before the words.
      is_open_ended: takes words that are no options; else these are among the wrong ones.
    """
    page = help_page.Page()
    if set(words) & set(_HELP):
        _unwrap_help(options)
    try:
        with contextlib.redirect_stdout(page):
            found = tyro.cli(
                options,
                prog=program,
                args=list(words),
                return_unknown_args=is_open_ended,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if not stop.code:
            print(help_page.wrapped(page.getvalue()))
        raise
    return found if is_open_ended else (found, [])


def _unwrap_help(options: type) -> None:
    """Make each option's docstring one line: tyro would keep its line breaks when it wraps it."""
    if sys.flags.optimize >= 2:
        options.__doc__ = docstring_of(options)  # tyro shows it above the options
    for kind in reversed(options.__mro__[:-1]):
        for said in docstring_parser.parse_from_object(kind).params:
            field = getattr(options, "__dataclass_fields__", {}).get(said.arg_name)
            if field is not None and said.description:
                field.metadata = {"help": " ".join(said.description.split())}


def _version() -> str:
    return (
        f"wallgo-jax {__version__} (jax {metadata.version('jax')}, "
        f"Python {sys.version.partition(' ')[0]})"
    )


def _first_sentence(command: type) -> str:
    return " ".join(docstring_of(command).split()).partition(". ")[0].rstrip(".")
