"""Command lines read by tyro, with one clear line for what is wrong in place of a boxed report."""

import contextlib
import dataclasses
import difflib
import io
from collections.abc import Sequence
from typing import Any

import tyro

# Rows from which a box only gives advice, and the words that end it.
_ADVICE = ("Argument helptext", "For full helptext", "Got errors")


def parse(
    commands: Any, words: Sequence[str], *, program: str, description: str
) -> tuple[Any, list[str]]:
    """The command that the words choose, and the words that it does not know.

    `--help` prints help and leaves by SystemExit(0).

    Args:
      commands: a union of dataclasses with tyro's annotations.
      words: the command line without the program.
      program: what the user types before the words.
      description: what the program is for, in one sentence.

    Raises:
      ValueError: in one line, what is missing or cannot be read, and what is allowed.
    """
    report = io.StringIO()
    try:
        with contextlib.redirect_stderr(report):
            return tyro.cli(
                commands,
                prog=program,
                description=description,
                args=list(words),
                return_unknown_args=True,
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise ValueError(f"{_in_one_line(report.getvalue())}; see {program} --help") from None


def refuse_unknown(command: Any, unknown: Sequence[str]) -> None:
    """Refuse words that a command, a dataclass, has no option for.

    Raises:
      ValueError: there are some; with the option that is nearest to the first.
    """
    if not unknown:
        return
    options = [f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(command)]
    near = difflib.get_close_matches(unknown[0], options, n=1)
    hint = f"; did you mean {near[0]}?" if near else "; see --help"
    raise ValueError(f"Unrecognized options: {', '.join(unknown)}{hint}")


def _in_one_line(box: str) -> str:
    """The sentences of a box up to its advice, a semicolon in place of each rule.

    The title stands in the upper border, or, where the terminal cannot draw borders, in a row of
    its own above the first rule.
    """
    rows = [row.strip("│ ") for row in box.strip().splitlines()]
    text = ""
    for row in rows[1:] if rows[0].startswith("╭") else rows[2:]:
        if row.startswith(_ADVICE):
            break
        text += f" {row}" if row.strip("╰╯─-") else ";"
    return text.strip(" ;.").replace(" ;", ";").replace(".;", ";")
