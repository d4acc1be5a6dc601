"""Record files: one game a line, each a JSON object that any tool can read.

| key | value |
|---|---|
| `variant` | a preset's name, or `custom` |
| `rules` | the fields of `wallgo_jax.Rules`; only where the variant is `custom` |
| `grid` | side length of the grid that numbers the actions; only where larger than the board |
| `actions` | public action ids, from the first ply on |
| `players` | printable names of the players in the order of play, or null |
| `result` | each player's reward (1 for a sole winner), or null for an unfinished game |
| `values` | the search's value of each ply for its mover, -1 to 1, or null; only if there are any |
| `searches` | what a search said at each ply, or null; only if there are any |
| `env_version` | the version of the environment that the game was played in |

A search is an object of three lists of equal length, the likeliest action first:

| key | value |
|---|---|
| `actions` | public action ids, each once: those that the search holds likely |
| `shares` | their shares of its improved policy, 0 to 1; the others' shares are what is left of 1 |
| `visits` | how often it visited them; null where it does not say |

Other keys are kept as they are. A path that ends in `.gz` is read and written compressed.
"""

import contextlib
import dataclasses
import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from wallgo_jax import env
from wallgo_jax.board.geometry import MAX_GRID
from wallgo_jax.formats.files import DAMAGES, write_whole
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.view.game_replay import Game, replay_actions

_CUSTOM = "custom"
_TEXT = "utf-8-sig"  # Some editors open a file with a byte order mark.
_CHUNK = 2**20
_ROUNDING = 0.01  # of up to dozens of shares in half precision


class Searched(NamedTuple):
    """What a search said of the actions that it holds likely, the likeliest first."""

    actions: tuple[int, ...]  # public
    shares: tuple[float, ...]  # of its improved policy
    visits: tuple[int, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Record:
    """One game. Its fields are the keys of a line; lists are kept as tuples.

    `extra` holds the values of other keys, as JSON has them.

    Raises:
      ValueError: in one line, which key is wrong and what is allowed.
    """

    rules: Rules
    actions: tuple[int, ...]
    grid: int | None = None
    players: tuple[str, ...] | None = None
    result: tuple[float, ...] | None = None
    values: tuple[float | None, ...] | None = None
    searches: tuple[Searched | None, ...] | None = None
    env_version: str | None = env.VERSION
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for key, kinds in _KINDS.items():
            value = getattr(self, key)
            if value is None and key != "actions":
                continue
            if isinstance(value, str) or not isinstance(value, Sequence):
                raise ValueError(f"{key}: {value!r} is not a list")
            for place, entry in enumerate(value, start=1):
                is_kind = isinstance(entry, kinds) and not isinstance(entry, bool)
                if not is_kind or not _IS_ALLOWED[key](entry):
                    raise ValueError(f"{key}: entry {place} is {entry!r}, not {_WORDS[key]}")
            object.__setattr__(self, key, tuple(value))
        if self.searches is not None:
            object.__setattr__(self, "searches", _searches(self.searches))
        self._check_lengths()
        if taken := sorted(_KEYS & self.extra.keys()):
            raise ValueError(f"extra: {taken[0]!r} is a key of records")
        version = self.env_version
        if version is not None and not (isinstance(version, str) and version.isprintable()):
            raise ValueError(f"env_version: {version!r} is not a version")
        if self.grid is not None and (
            not isinstance(self.grid, int) or not self.rules.size <= self.grid <= MAX_GRID
        ):
            raise ValueError(
                f"grid: {self.grid!r} is not a number from {self.rules.size} to {MAX_GRID}"
            )

    def _check_lengths(self) -> None:
        wanted = {
            "players": self.rules.players,
            "result": self.rules.players,
            "values": len(self.actions),
            "searches": len(self.actions),
        }
        for key, length in wanted.items():
            value = getattr(self, key)
            if value is not None and len(value) != length:
                raise ValueError(f"{key}: {len(value)} entries, not {length}")


_KEYS = {field.name for field in dataclasses.fields(Record)} - {"extra"} | {"variant"}
_NUMBER = (int, float)
_KINDS: dict[str, Any] = {
    "actions": int,
    "players": str,
    "result": _NUMBER,
    "values": (*_NUMBER, type(None)),
}
_IS_ALLOWED: dict[str, Callable[[Any], bool]] = {
    "actions": lambda action: True,  # The referee refuses those that are none.
    "players": str.isprintable,
    "result": lambda reward: -1 <= reward <= 1,
    "values": lambda value: value is None or -1 <= value <= 1,
}
_WORDS = {
    "actions": "a whole number",
    "players": "a printable name",
    "result": "a number from -1 to 1",
    "values": "a number from -1 to 1, or null",
}


def _searches(given: Any) -> tuple[Searched | None, ...]:
    """The searches of a record, checked; JSON has each as an object."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ValueError(f"searches: {given!r} is not a list")
    return tuple(
        None if each is None else _searched(each, place)
        for place, each in enumerate(given, start=1)
    )


def _searched(given: Any, place: int) -> Searched:
    fields = given._asdict() if isinstance(given, Searched) else given
    names = Searched._fields
    where = f"searches: entry {place}"
    if not isinstance(fields, Mapping) or not {"actions", "shares"} <= fields.keys() <= {*names}:
        raise ValueError(f"{where} is {given!r}, not null or an object of {', '.join(names)}")
    lists = {name: value for name, value in fields.items() if value is not None}
    for name, values in lists.items():
        is_share = name == "shares"
        kind = _NUMBER if is_share else int
        most = 1 if is_share else math.inf
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise ValueError(f"{where}: {name}: {values!r} is not a list")
        for value in values:
            if isinstance(value, bool) or not isinstance(value, kind) or not 0 <= value <= most:
                allowed = "a number from 0 to 1" if is_share else "a whole number from 0 on"
                raise ValueError(f"{where}: {name}: {value!r} is not {allowed}")
        if len(values) != len(lists["actions"]):
            raise ValueError(f"{where}: {len(values)} {name}, not {len(lists['actions'])}")
    if len({*lists["actions"]}) < len(lists["actions"]):
        raise ValueError(f"{where}: an action stands there twice")
    if sum(lists["shares"]) > 1 + _ROUNDING:
        raise ValueError(f"{where}: the shares add up to more than 1")
    return Searched(**{name: tuple(values) for name, values in lists.items()})


def of_game(
    game: Game,
    *,
    players: Sequence[str] | None = None,
    values: Sequence[float | None] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Record:
    """Make the record of a game that was played; its result is the referee's."""
    return Record(
        rules=game.rules,
        actions=game.actions,
        grid=game.grid if game.grid > game.rules.size else None,
        players=None if players is None else tuple(players),
        result=game.rewards if game.is_over else None,
        values=None if values is None else tuple(values),
        extra=extra or {},
    )


def replay(record: Record) -> Game:
    """Play the recorded game again.

    Raises:
      ValueError: at the first action that is not allowed, naming the ply and the reason; or where
        the result differs from the record's.
    """
    try:
        game = replay_actions(record.rules, record.actions, grid=record.grid)
    except ValueError as error:
        raise ValueError(f"{error}{_version_hint(record)}") from None
    if record.result is not None and not _is_close(game, record.result):
        raise ValueError(
            f"result: the record says {list(record.result)}, the referee "
            f"{list(game.rewards) if game.is_over else 'that the game goes on'}"
            f"{_version_hint(record)}"
        )
    return game


def _is_close(game: Game, result: Sequence[float]) -> bool:
    pairs = zip(game.rewards, result, strict=True)
    return game.is_over and all(abs(a - b) < 1e-3 for a, b in pairs)


def _version_hint(record: Record) -> str:
    if record.env_version in (None, env.VERSION):
        return ""
    return f" (recorded by environment version {record.env_version}; this is {env.VERSION})"


def to_json(record: Record) -> str:
    """Return the record's line, without its line end.

    Raises:
      ValueError: JSON cannot hold a value of another key.
    """
    name = rules_lib.name_of(record.rules)
    fields: dict[str, Any] = {"variant": name}
    if name not in PRESETS:
        fields["rules"] = record.rules.to_dict()
    if record.grid is not None and record.grid > record.rules.size:
        fields["grid"] = record.grid
    fields["actions"] = list(record.actions)
    fields["players"] = None if record.players is None else list(record.players)
    fields["result"] = None if record.result is None else list(record.result)
    if record.values is not None:
        fields["values"] = list(record.values)
    if record.searches is not None:
        fields["searches"] = [each and each._asdict() for each in record.searches]
    fields["env_version"] = record.env_version
    try:
        return json.dumps(fields | dict(record.extra), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"other keys: {error}") from None


def from_json(line: str) -> Record:
    """Read the record of a line.

    Raises:
      ValueError: in one line, which key is wrong and what is allowed.
    """
    try:
        fields = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError("not a JSON object")
    for key in ("variant", "actions"):
        if key not in fields:
            raise ValueError(f"key {key!r} is missing")
    given: dict[str, Any] = {key: fields.get(key) for key in _KEYS - {"variant", "rules"}}
    extra = {key: value for key, value in fields.items() if key not in _KEYS}
    return Record(rules=_rules(fields), extra=extra, **given)


def _rules(fields: dict[str, Any]) -> Rules:
    name, rules = fields["variant"], fields.get("rules")
    if not isinstance(name, str):
        raise ValueError(f"variant: {name!r} is not a name")
    if rules is None:
        if name == _CUSTOM:
            raise ValueError(f"variant: {name!r} needs the key 'rules'")
        return rules_lib.named(name)
    if not isinstance(rules, dict):
        raise ValueError(f"rules: {rules!r} is not an object")
    made = Rules.from_dict(rules)
    if PRESETS.get(name, made) != made:
        raise ValueError(f"rules: they differ from those of the variant {name!r}")
    return made


def read(path: str | Path) -> Iterator[Record]:
    """Yield the games of a file one by one; blank lines do not count.

    Raises:
      OSError: the file cannot be opened.
      ValueError: `FILE, line N: reason`.
    """
    for number, line in _numbered_lines(path):
        if not line.strip():
            continue
        if line.startswith("#"):
            raise ValueError(
                f"{path}: moves, not records; python -m wallgo_jax convert {path} --to record "
                "makes a record of them"
            )
        try:
            yield from_json(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None


def _numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    number = 0
    with _open(path) as file:
        try:
            for number, line in enumerate(file, start=1):
                yield number, line
        except DAMAGES:
            raise ValueError(
                f"{path}, line {number + 1}: the file is cut short or damaged from here on, or it "
                "is no text"
            ) from None


def write(path: str | Path, records: Iterable[Record], *, append: bool = False) -> None:
    """Write games to a file, in place of its content or after it.

    After an error the file is as it was. A half-written last line, as a full disk leaves, is
    dropped before games are added.

    Raises:
      OSError: the file cannot be written.
    """
    path = Path(path)
    lines = "".join(to_json(record) + "\n" for record in records).encode()
    content = (_whole_lines(path) if append and path.is_file() else b"") + lines
    write_whole(path, gzip.compress(content) if path.suffix == ".gz" else content)


def _whole_lines(path: Path) -> bytes:
    """The lines of a file; the last one gets its line end, or is dropped where it is no JSON."""
    kept = bytearray()
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        # The end of a damaged file is lost, as that of a half-written line is.
        with contextlib.suppress(EOFError, zlib.error):
            while some := file.read1(_CHUNK):
                kept += some
    end = kept.rfind(b"\n") + 1
    try:
        json.loads(kept[end:])
    except ValueError:
        return bytes(kept[:end])
    return bytes(kept) + b"\n"


def _open(path: str | Path) -> IO[str]:
    if str(path).endswith(".gz"):
        return cast(IO[str], gzip.open(path, "rt", encoding=_TEXT))
    return open(path, encoding=_TEXT)
