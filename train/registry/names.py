"""The grammar of players' names: `kind[:target][@simulations]`.

    random                     any legal action
    greedy                     one ply, largest immediate lead in territory
    ethen, wjx                 one ply, by a distance heuristic of the HKOI contest
    two-ply:NAME               its best plies, each with the best reply to it
    heuristic-search:NAME[@n]  the heuristic in place of a network in a search of n simulations
    exact                      perfect play on small boards
    net:PATH                   raw policy of a network
    search:PATH[@n]            the network in a search of n simulations (64 by default)
    PATH[@n]                   the same, where PATH exists
    pretrained:NAME[@n]        a search with weights that come with the package

PATH is a run directory, which means its newest checkpoint, one of its checkpoints,
RUN/checkpoints/ITERATION, or a folder that `export` wrote; net: and search: also take
pretrained:NAME for it.
"""

import difflib
from pathlib import Path
from typing import NamedTuple

from train.runtime.errors import UsageError
from train.search.config import MAX_SIMULATIONS

DEFAULT_SIMULATIONS = 64
HEURISTIC, PATH, MODEL = "heuristic", "run directory", "model"
RUNS = Path("runs")
"""Where runs lie unless said; a run's bare name is told to be looked for there."""


class PlayerKind(NamedTuple):
    """What a name of one kind may hold."""

    target: str = ""  # what the target names; empty for a kind without target
    searches: bool = False  # whether it takes a number of simulations

    @property
    def has_network(self) -> bool:
        """Whether players of this kind are trained."""
        return self.target in (PATH, MODEL)


PLAYER_KINDS = {
    "random": PlayerKind(),
    "greedy": PlayerKind(),
    "ethen": PlayerKind(),
    "wjx": PlayerKind(),
    "two-ply": PlayerKind(HEURISTIC),
    "heuristic-search": PlayerKind(HEURISTIC, searches=True),
    "exact": PlayerKind(),
    "net": PlayerKind(PATH),
    "search": PlayerKind(PATH, searches=True),
    "pretrained": PlayerKind(MODEL, searches=True),
}
NETWORKS = "PATH, net:PATH, search:PATH, pretrained:NAME"
KINDS = (
    "random, greedy, ethen, wjx, two-ply:ethen|wjx, heuristic-search:ethen|wjx[@simulations], "
    "exact, net:PATH, [search:]PATH[@simulations], pretrained:NAME[@simulations]; PATH is a run, "
    "RUN/checkpoints/ITERATION or an exported folder"
)


class PlayerName(NamedTuple):
    """A player's name, taken apart; a bare path has the kind `search`."""

    text: str  # as it was written
    kind: str
    target: str
    simulations: int | None  # None where none are said
    is_bare: bool = False

    @property
    def budget(self) -> int:
        """Simulations a move of a kind that searches."""
        return DEFAULT_SIMULATIONS if self.simulations is None else self.simulations

    @property
    def has_network(self) -> bool:
        """Whether the player is trained."""
        return PLAYER_KINDS[self.kind].has_network

    @property
    def full(self) -> str:
        """The name with everything said: what tables show, and a name again."""
        made = PLAYER_KINDS[self.kind]
        target = f":{self.target}" if made.target else ""
        return f"{self.kind}{target}" + (f"@{self.budget}" if made.searches else "")


def read_name(text: str) -> PlayerName:
    """Take a player's name apart.

    Raises:
      UsageError: there is no such kind, its target is missing, or it takes no target or no
        simulations.
    """
    kind, colon, rest = text.partition(":")
    if kind not in PLAYER_KINDS:
        path = _read_path(text)
        # With a separator it can only be a path: its reader says what is missing.
        if len(Path(path.target).parts) > 1 or (path.target and Path(path.target).exists()):
            return path
        raise _unknown(text, path.target)
    made = PLAYER_KINDS[kind]
    if not made.target and colon:
        raise _error(text, f"{kind} takes no target")
    target, budget = _split_budget(rest)
    if made.target and not target:
        raise _error(text, f"names no {made.target}")
    if budget is not None and not made.searches:
        raise _error(text, f"{kind} takes no simulations")
    return PlayerName(text, kind, target, _read_budget(text, budget))


def read_network_name(text: str) -> PlayerName:
    """Take the name of a trained player apart, where a network is asked for, not a player.

    A word that is no kind is a path, whether it exists or not.

    Raises:
      UsageError: players of this kind have no network.
    """
    kind = text.partition(":")[0]
    name = read_name(text) if kind in PLAYER_KINDS else _read_path(text)
    if not name.has_network:
        raise UsageError(f"player {text!r}: has no network; allowed: {NETWORKS}")
    return name


def _read_path(text: str) -> PlayerName:
    target, budget = _split_budget(text)
    return PlayerName(text, "search", target, _read_budget(text, budget), is_bare=True)


def _split_budget(text: str) -> tuple[str, str | None]:
    """`target@budget` in two; None without a budget. The path of a file may hold an @."""
    target, at, budget = text.rpartition("@")
    return (text, None) if not at or Path(text).exists() else (target, budget)


def _read_budget(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= MAX_SIMULATIONS:
        raise UsageError(f"player {name!r}: {text!r} simulations; allowed: 1 to {MAX_SIMULATIONS}")
    return int(text)


def _unknown(text: str, target: str) -> UsageError:
    """The complaint about a word that is neither a kind nor a path."""
    if target and (RUNS / target).exists():
        return _error(text, f"unknown; did you mean {RUNS / text}?")
    near = difflib.get_close_matches(target, PLAYER_KINDS, n=1)
    return _error(text, f"unknown; did you mean {near[0]}?" if near else "unknown")


def _error(text: str, reason: str) -> UsageError:
    end = " Known" if reason.endswith("?") else "; known"
    return UsageError(f"player {text!r}: {reason}{end} players: {KINDS}")
