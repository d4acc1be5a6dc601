"""The grammar of players' names: `kind[:target][@simulations | @seconds s][?key=value&...]`.

`PLAYER_KINDS` has the kinds, `OPTIONS` the keys behind the question mark; docs/players.md says what
each plays. PATH is a run directory, which means its newest checkpoint, one of its checkpoints,
RUN/checkpoints/ITERATION, or a folder that `export` wrote; PATH alone is search:PATH, and net: and
search: also take pretrained:NAME for it. A time, such as @0.5s, becomes simulations when the player
is made.
"""

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from train.runtime.errors import UsageError
from train.search.config import MAX_SIMULATIONS, OPPONENTS

DEFAULT_SIMULATIONS = 64
MAX_SECONDS = 600.0
HEURISTIC, PATH, MODEL, COMMAND = "ethen|wjx", "PATH", "NAME", "COMMAND"
"""What targets name, as error messages and help write it."""
EXTERNAL = "external"
RUNS = Path("runs")
"""The folder of runs unless said; a run's bare name gives a hint to look there."""

MOVE_SECONDS = 60.0
"""Seconds that a program may take for a move unless said."""


class PlayerKind(NamedTuple):
    """What a name of one kind may hold."""

    target: str = ""  # what the target names; empty for a kind without target
    searches: bool = False  # whether it takes a number of simulations

    @property
    def has_network(self) -> bool:
        """Whether players of this kind are trained."""
        return self.target in (PATH, MODEL)


PLAYER_KINDS = {kind: PlayerKind() for kind in ("random", "greedy", "ethen", "wjx", "exact")} | {
    "two-ply": PlayerKind(HEURISTIC),
    "heuristic-search": PlayerKind(HEURISTIC, searches=True),
    "net": PlayerKind(PATH),
    "search": PlayerKind(PATH, searches=True),
    "pretrained": PlayerKind(MODEL, searches=True),
    EXTERNAL: PlayerKind(COMMAND),
}
FORMS = {
    name: f"{name}{kind.target and f':{kind.target}'}{'[@simulations]' * kind.searches}"
    for name, kind in PLAYER_KINDS.items()
}
"""The form of a name of each kind, in words."""
OPTIONS: dict[str, Mapping[str, Any]] = {
    "symmetries": {str(count): count for count in range(1, 9)},
    "opponents": {word: word for word in OPPONENTS},
    "rounds": {"true": True, "false": False},
    "considered": {str(count): count for count in range(1, 1025)},
}
"""Values of the options, by their text: the turned copies of a root whose mean evaluation a player
with a network begins with; `search.opponents`, `search.rounds` and
`search.player_max_considered_actions` of a player that searches."""


class PlayerName(NamedTuple):
    """A player's name, taken apart; a bare path has the kind `search`."""

    text: str  # as it was written
    kind: str
    target: str = ""
    simulations: int | None = None  # None where none are said
    seconds: float | None = None  # of a move, in place of simulations
    symmetries: int = 1
    opponents: str = ""  # empty where the player's own is taken
    rounds: bool | None = None  # None where the player's own is taken
    considered: int = 0  # 0 where the player's own is taken

    @property
    def is_bare(self) -> bool:
        """Whether it is a path without a kind."""
        return self.text.partition(":")[0] != self.kind

    @property
    def budget(self) -> int:
        """Simulations a move of a kind that searches, unless its budget is time."""
        return DEFAULT_SIMULATIONS if self.simulations is None else self.simulations

    @property
    def budget_text(self) -> str:
        """The budget as it is written in a name, `@64` or `@0.5s`."""
        if self.seconds is None:
            return f"@{self.budget}"
        # Never with an exponent, which names do not have.
        return f"@{f'{self.seconds:.12f}'.rstrip('0').rstrip('.')}s"

    @property
    def has_budget(self) -> bool:
        """Whether a budget is said."""
        return self.simulations is not None or self.seconds is not None

    @property
    def options_text(self) -> str:
        """The options as they are written in a name, those of no effect left out."""
        said = [
            f"{key}={str(getattr(self, key)).lower()}"
            for key in OPTIONS
            if getattr(self, key) != self._field_defaults[key]
        ]
        return f"?{'&'.join(said)}" if said else ""

    @property
    def has_network(self) -> bool:
        """Whether the player is trained."""
        return PLAYER_KINDS[self.kind].has_network

    @property
    def full(self) -> str:
        """The name with everything said: what tables show, and a name again."""
        target = f":{self.target}" if self.target else ""
        budget = self.budget_text if PLAYER_KINDS[self.kind].searches else ""
        return f"{self.kind}{target}{budget}{self.options_text}"

    def with_simulations(self, simulations: int) -> "PlayerName":
        """The player of this many simulations in place of its budget."""
        return self._replace(simulations=simulations, seconds=None)


def read_name(text: str) -> PlayerName:
    """Take a player's name apart.

    Raises:
      UsageError: there is no such kind or heuristic, its target is missing, it takes no target or
        no simulations, or the name cannot be printed, as records of its games ask.
    """
    kind, _, rest = text.partition(":")
    if kind == EXTERNAL and rest.strip() and text.isprintable():
        # The command is everything behind the colon, whatever it holds.
        return PlayerName(text, EXTERNAL, rest)
    if kind not in PLAYER_KINDS:
        name = _read_parts(text, "search", text)
        # With a separator it can only be a path: its reader says what is missing.
        if len(Path(name.target).parts) > 1 or os.path.exists(name.target):
            return name
        near = difflib.get_close_matches(name.target, PLAYER_KINDS, n=1)
        near = [str(RUNS / text)] if os.path.exists(RUNS / (name.target or text)) else near
        raise _error(text, f"unknown; did you mean {near[0]}?" if near else "unknown")
    return _read_parts(text, kind, rest)


def read_network_name(text: str) -> PlayerName:
    """Take the name of a trained player apart, where a network is asked for, not a player.

    A word that is no kind is a path, whether it exists or not.

    Raises:
      UsageError: players of this kind have no network, or as `read_name`.
    """
    is_path = text.partition(":")[0] not in PLAYER_KINDS
    name = _read_parts(text, "search", text) if is_path else read_name(text)
    if not name.has_network:
        raise UsageError(f"player {text!r}: has no network; allowed: PATH or another that has one")
    return name


def check_without_budget(name: PlayerName, *, searches: bool = False) -> None:
    """Refuse a name with a budget, or also one whose player never searches, with a UsageError."""
    if name.has_budget or (searches and name.kind == "net"):
        what = "one that searches" if searches else "one"
        raise UsageError(f"player {name.text!r}: name {what}, without simulations")


def _read_parts(text: str, kind: str, rest: str) -> PlayerName:
    """The name of a kind, from what stands behind it."""
    if not text.isprintable():
        raise UsageError(f"player {text!r}: has a character that cannot be printed")
    allowed = PLAYER_KINDS[kind]
    readings = [read.groupdict() for form in _FORMS if (read := form.fullmatch(rest))]
    # A path that exists may hold an @ or a ?.
    parts = next((each for each in readings if os.path.exists(each["target"])), readings[-1])
    target, budget, options = (parts.get(part) for part in ("target", "budget", "options"))
    is_named = bool(target) if allowed.target else text == kind
    if allowed.target == HEURISTIC:
        is_named = target in HEURISTIC.split("|")
    if not is_named or (budget is not None and not allowed.searches):
        raise _error(text, f"is not of the form {FORMS[kind]}")
    name = PlayerName(text, kind, target or "")
    if budget is not None:
        name = name._replace(**_read_budget(text, budget))
    return name if options is None else name._replace(**_read_options(text, allowed, options))


_FORMS = [
    re.compile(f"(?P<target>.*){budget}{options}")
    for options in ("", r"\?(?P<options>[^?]*)")
    for budget in ("", "@(?P<budget>[^@?]*)")
]
"""`target@budget?options` and what may be left out."""


def _read_budget(text: str, budget: str) -> dict[str, Any]:
    """The simulations, or the seconds."""
    if re.fullmatch("[0-9]{1,9}", budget) and 1 <= int(budget) <= MAX_SIMULATIONS:
        return {"simulations": int(budget)}
    if re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)s", budget):
        if 0 < (seconds := float(budget[:-1])) <= MAX_SECONDS:
            return {"seconds": seconds}
    raise UsageError(
        f"player {text!r}: {budget!r} a move; allowed: 1 to {MAX_SIMULATIONS} simulations, or time "
        f"above 0s, up to {MAX_SECONDS:g}s"
    )


def _read_options(text: str, kind: PlayerKind, options: str) -> dict[str, Any]:
    """The values of `key=value&...` by their keys."""
    words = [word.partition("=") for word in options.split("&")]
    known = {
        key: values
        for key, values in OPTIONS.items()
        if (kind.has_network if key == "symmetries" else kind.searches)
    }
    read = {k: known[k][value] for k, _, value in words if value in known.get(k, ())}
    if len(read) < len(words):
        allowed = [
            f"{key}={'|'.join(values) if len(values) == 2 else f'1 to {len(values)}'}"
            for key, values in known.items()
        ]
        raise UsageError(
            f"player {text!r}: unknown option in {options!r}; allowed, once: {', '.join(allowed)}"
        )
    return read


def _error(text: str, reason: str) -> UsageError:
    return UsageError(
        f"player {text!r}: {reason}; known players: {', '.join(FORMS.values())}; PATH alone is "
        "search:PATH, a run, RUN/checkpoints/ITERATION or an exported folder; docs/players.md has "
        "the options"
    )
