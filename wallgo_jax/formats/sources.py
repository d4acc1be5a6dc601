"""Reads games and positions from where they are: a preset, a file or a game written out.

A source is `-` (standard input), a preset's name, a file, or the game itself. Text is a record
file, an HKOI code or several, one a line, a position diagram or moves in human notation; how it
begins tells. Moves may name their rules and players in a first comment, which parts games, and end
with a picture (`wallgo_jax.formats.move_text`).
"""

import contextlib
import gzip
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wallgo_jax.formats import diagram, hkoi_code, move_text, records
from wallgo_jax.formats.files import UNREADABLE
from wallgo_jax.formats.option_names import argument
from wallgo_jax.formats.records import Record
from wallgo_jax.formats.rules_text import read_rules
from wallgo_jax.game.rules import PRESETS, Rules, named
from wallgo_jax.game.state import State
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import Game, check_grid, replay_actions, replay_moves

_CODE = re.compile(r"[0-9a-v\s]*_[0-9a-v\s]*", re.IGNORECASE)
_DIAGRAM = re.compile(rf"(\s|#.*\n)*({'|'.join(diagram.KEYS)})\s*:")
_GAME_OF_A_RUN = "game.jsonl"
_MOVES = re.compile(r"(\s|#.*\n|\d+\.|[RBGY]\s)*[A-Z]\d", re.IGNORECASE)
_FILE_ENDING = re.compile(r"\.[A-Za-z]\w*\Z")
"""The dot of a move's number, as in `2. B D4`, begins none."""
_MARK = "\ufeff"
"""Byte order mark, with which some editors open a file."""


class LoadedGame(NamedTuple):
    """A game with the record that it came from and the players' names, where they are known."""

    game: Game
    record: Record | None = None
    players: tuple[str, ...] | None = None


class SourceRequest(NamedTuple):
    """Where games are found, and how they are read.

    Attributes:
      source: as the module says.
      rules: rules of moves and codes, as `read_rules` takes them; empty if not said.
      grid: the side length of the grid that numbers the cells; 0 for the board's own.
      game: which game of a file of several, counted from 1; 0 for all of them.
      default_rules: of moves that do not name theirs, where no rules are said.
    """

    source: str
    rules: str = ""
    grid: int = 0
    game: int = 0
    default_rules: Rules | None = None


def read_position(asked: SourceRequest, *, ply: int) -> State:
    """Read the position of a diagram, or of a game after `ply` plies; -1 means the end.

    Raises:
      ValueError: what is wrong, where, and what is allowed.
    """
    text, name = _text_of(asked.source)
    if text is not None and _DIAGRAM.match(text):
        _refuse_options(asked, "a diagram", "rules", "grid", "game")
        if ply != -1:
            raise ValueError(
                f"{argument('ply', ply)}: has no effect on a diagram, which is one position"
            )
        with _naming(name):
            return diagram.parse(text)
    game = next(_games(asked._replace(game=asked.game or 1), text, name)).game
    if not -1 <= ply < len(game.states):
        raise ValueError(f"{argument('ply', ply)}: the game has plies 0 to {len(game.states) - 1}")
    return game.states[ply]


def read_positions(asked: SourceRequest) -> Iterator[tuple[State, tuple[int, ...] | None]]:
    """Yield the position at the end of each game of a source, with the game's public actions, or
    the position of each diagram, with None. A blank line parts diagrams.

    Raises:
      ValueError: what is wrong, where, and what is allowed.
    """
    text, name = _text_of(asked.source)
    if text is not None and _DIAGRAM.match(text):
        for number, part in enumerate(filter(str.strip, re.split(r"\n\s*\n", text)), start=1):
            with _naming(f"{name}, position {number}"):
                yield diagram.parse(part), None
    else:
        for loaded in _games(asked, text, name):
            yield loaded.game.states[-1], loaded.game.actions


def read_games(asked: SourceRequest) -> Iterator[LoadedGame]:
    """Yield the games of a source one by one.

    Raises:
      ValueError: what is wrong, where, and what is allowed.
    """
    yield from _games(asked, *_text_of(asked.source))


def read_games_of_text(
    text: str, *, name: str, rules: str = "", default_rules: Rules | None = None
) -> Iterator[LoadedGame]:
    """Yield the games of a text: records, an HKOI code or moves that name their rules.

    Args:
      text: as the module says.
      name: what errors call it.
      rules: as in `SourceRequest`.
      default_rules: likewise.

    Raises:
      ValueError: what is wrong, where, and what is allowed.
    """
    yield from _games(SourceRequest("", rules, default_rules=default_rules), _clean(text), name)


def _games(asked: SourceRequest, text: str | None, name: str) -> Iterator[LoadedGame]:
    rules = read_rules(asked.rules) if asked.rules else None
    if asked.game < 0:
        raise ValueError(f"{argument('game', asked.game)}: games are numbered from 1")
    if text is None:
        _refuse_options(asked, "a preset", "rules", "game")
        yield LoadedGame(replay_actions(named(asked.source), [], grid=asked.grid or None))
    elif not text.strip():
        raise ValueError(f"{name}: is empty")
    elif _DIAGRAM.match(text):
        raise ValueError(f"{name}: a position diagram holds no game")
    elif text.lstrip().startswith("{"):
        _refuse_options(asked, "records", "rules", "grid")
        yield from _recorded(text, name, asked.game)
    elif _is_codes(text):
        _refuse_options(asked, "HKOI codes", "grid")
        yield from _coded(text, name, asked.game, rules or PRESETS["hkoi"])
    else:
        yield from _moved(asked, text, name, rules)


def _refuse_options(asked: SourceRequest, kind: str, *options: str) -> None:
    """Refuse options that have no effect on a kind of source; of one game the first may be asked
    for."""
    given = {"rules": asked.rules, "grid": asked.grid, "game": asked.game not in (0, 1)}
    for option in options:
        if given[option]:
            raise ValueError(f"{argument(option)}: has no effect on {kind}; leave it out")


def _recorded(text: str, name: str, chosen: int) -> Iterator[LoadedGame]:
    for number, line in _choose(_lines_of(text), name, chosen):
        with _naming(f"{name}, line {number}"):
            record = records.from_json(line)
            game = records.replay(record)
        yield LoadedGame(game, record, record.players)


def _lines_of(text: str) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers.

    Only a line feed ends one: a name in a record may hold other characters that Python takes for
    line ends.
    """
    return [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _choose(lines: Sequence[tuple[int, str]], name: str, chosen: int) -> Sequence[tuple[int, str]]:
    """The line of a game, counted from 1, or all lines for 0."""
    if chosen > len(lines):
        raise ValueError(f"{argument('game', chosen)}: {name} has {len(lines)} games")
    return lines[chosen - 1 : chosen] if chosen else lines


def _is_codes(text: str) -> bool:
    """Whether a text is an HKOI code, which may go over several lines, or a code a line."""
    lines = [line for _, line in _lines_of(text)]
    return bool(_CODE.fullmatch(text)) or (bool(lines) and all(map(_CODE.fullmatch, lines)))


def _coded(text: str, name: str, chosen: int, rules: Rules) -> Iterator[LoadedGame]:
    is_one = _CODE.fullmatch(text)
    for number, code in _choose([(1, text)] if is_one else _lines_of(text), name, chosen):
        with _naming(name if is_one else f"{name}, line {number}"):
            game = hkoi_code.decode(code, rules)
        yield LoadedGame(game)


def _moved(asked: SourceRequest, text: str, name: str, rules: Rules | None) -> Iterator[LoadedGame]:
    games = list(enumerate(move_text.split_games(text), start=1))
    if len(games) == 1:
        _refuse_options(asked, "moves of one game", "game")
    for number, each in _choose(games, name, asked.game):
        yield _moved_game(asked, each, name if len(games) == 1 else f"{name}, game {number}", rules)


def _moved_game(asked: SourceRequest, text: str, name: str, rules: Rules | None) -> LoadedGame:
    with _naming(name):
        rules = rules or move_text.read_rules(text) or asked.default_rules
        if rules is None:
            raise ValueError(f"moves need {argument('rules')}; presets: {', '.join(PRESETS)}")
    grid = asked.grid or rules.size
    check_grid(grid, rules)
    with _naming(name):
        moves = parse_moves(move_text.without_picture(text), grid=grid)
        game = replay_moves(rules, moves, grid=grid)
    return LoadedGame(game, players=move_text.read_players(text, rules))


def _text_of(source: str) -> tuple[str | None, str]:
    """Return the source's text, None for a preset, and the name that errors call it by."""
    if source == "-":
        return _clean(sys.stdin.read()), "standard input"
    if source in PRESETS:
        return None, source
    if _is_file(source):
        with _naming(source):
            return _read_file(Path(source)), source
    if _is_folder(source):
        kept = Path(source) / _GAME_OF_A_RUN
        hint = f"; this one keeps its game in {kept}" if kept.is_file() else ""
        raise ValueError(f"{source}: is a directory, not a file of a game{hint}")
    if _is_codes(source):
        return source, "code"
    if _MOVES.match(source) and not _FILE_ENDING.search(source):
        return source, "moves"
    raise ValueError(
        f"{source!r} is not a file, preset, HKOI code or move; presets: {', '.join(PRESETS)}"
    )


def _is_file(source: str) -> bool:
    try:
        path = Path(source)
        return path.exists() and not path.is_dir()
    except OSError:  # Moves written down are soon longer than a file's name may be.
        return False


def _is_folder(source: str) -> bool:
    try:
        return Path(source).is_dir()
    except OSError:
        return False


def _read_file(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except UNREADABLE:
            raise ValueError("not a gzip file") from None
    try:
        return _clean(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("not a text file") from None


def _clean(text: str) -> str:
    """Drop a byte order mark, and end each line by a line feed alone, however the text ends it."""
    return text.removeprefix(_MARK).replace("\r\n", "\n").replace("\r", "\n")


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Put a name in front of the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
