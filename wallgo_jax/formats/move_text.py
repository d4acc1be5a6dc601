"""Text files of moves, for people first: rules in a comment, moves, and a picture of the end.

    # wallzero-4stone, Red search:runs/a@64, Blue wjx
      1. R F1             2. B A2             3. B F3             4. R F5
      ...

         A   B   C   D   E   F   G
       +---+---+---+---+---+---+---+
      ...

The first comment may name the rules, a preset or the JSON object of `wallgo_jax.Rules`, and the
players. A reader stops at the line of column letters that opens a picture of a board. Each such
comment after moves opens another game. The grid that numbers the actions is not written.
"""

import json
import re
from collections.abc import Sequence

from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import COLOURS

_COMMENT = re.compile(r"\s*#[ \t]*(.*)")
_PICTURE = re.compile(r"^[ \t]*A +B +C[ A-Z]*$", re.MULTILINE)


def header(rules: Rules, players: Sequence[str] | None = None) -> str:
    """Write the comment, one line, that names the rules and, if they are known, the players.

    A name with the beginning of another player's part, as `, Blue `, loses that comma.
    """
    name = rules_lib.name_of(rules)
    told = name if name in PRESETS else json.dumps(rules.to_dict())
    colours = COLOURS[: len(players or ())]
    part = re.compile(rf", (?=(?:{'|'.join(colours)}) )")
    names = [
        f"{colour} {part.sub(' ', _in_one_line(name)).strip()}"
        for colour, name in zip(colours, players or (), strict=True)
    ]
    return f"# {', '.join([told, *names])}"


def read_rules(text: str) -> Rules | None:
    """Return the rules that the first comment names, if the text opens with one that does.

    Raises:
      ValueError: they are no rules.
    """
    comment = _COMMENT.match(text)
    if comment is None:
        return None
    told = comment.group(1)
    if not told.startswith("{"):
        return PRESETS.get(re.split(r"[\s,]", told)[0])
    try:
        fields, _ = json.JSONDecoder().raw_decode(told)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"line 1: the rules are not JSON: {error}") from None
    return Rules.from_dict(fields)


def read_players(text: str, rules: Rules) -> tuple[str, ...] | None:
    """Return the names that the first comment gives the players, or None if it leaves one out."""
    comment = _COMMENT.match(text)
    if comment is None:
        return None
    told, names = comment.group(1), []
    for colour in reversed(COLOURS[: rules.players]):
        told, _, name = told.rpartition(f", {colour} ")
        names.append(_in_one_line(name))
    return tuple(reversed(names)) if told and all(names) else None


def _in_one_line(name: str) -> str:
    return " ".join(name.split())


def split_games(text: str) -> list[str]:
    """Part a text before each comment behind moves that names rules as `header` writes them.

    A text that does not open with such a comment is one game.
    """
    if not _is_header(text.lstrip().partition("\n")[0]):
        return [text]
    games: list[list[str]] = [[]]
    has_moves = False
    for line in text.split("\n"):
        if has_moves and _is_header(line):
            games.append([])
            has_moves = False
        has_moves |= bool(line.strip()) and _COMMENT.match(line) is None
        games[-1].append(line)
    return ["\n".join(lines) for lines in games]


def _is_header(line: str) -> bool:
    """Whether a line is a comment of rules alone, or of rules and players."""
    comment = _COMMENT.match(line)
    if comment is None:
        return False
    told = comment.group(1).rstrip()
    if not told.startswith("{"):
        return told.partition(",")[0] in PRESETS
    try:
        _, end = json.JSONDecoder().raw_decode(told)
    except (json.JSONDecodeError, RecursionError):
        return False
    return told[end : end + 1] in ("", ",")


def without_picture(text: str) -> str:
    """Return the text up to the picture of a board, if it has one."""
    picture = _PICTURE.search(text)
    return text if picture is None else text[: picture.start()]
