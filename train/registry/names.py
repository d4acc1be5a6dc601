"""The grammar of players' names: `kind[:target][@simulations | @seconds s][?key=value&...]`.

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
    external:COMMAND           a program that speaks the protocol of `python -m train engine`

A search of n simulations may be one of so much time instead, such as @0.5s, which becomes
simulations when the player is made. Players with a network take ?symmetries=k: what they evaluate
first, the root, is the mean over k turned copies of the board. Players that search take
?opponents=paranoid|maxn: how the others are taken to play where more than two do, and
?rounds=true|false: whether a round of sequential halving is one step, and ?considered=n: the most
actions that the search considers at its root, which else its simulations decide.

PATH is a run directory, which means its newest checkpoint, one of its checkpoints,
RUN/checkpoints/ITERATION, or a folder that `export` wrote; net: and search: also take
pretrained:NAME for it.
"""

import difflib
import math
import os
import re
from pathlib import Path
from typing import NamedTuple

from train.runtime.errors import UsageError
from train.search.config import MAX_SIMULATIONS, OPPONENTS

DEFAULT_SIMULATIONS = 64
MAX_SECONDS = 600.0
MAX_SYMMETRIES = 8
MAX_CONSIDERED = 1024
SYMMETRIES, OPPONENTS_KEY, ROUNDS = "symmetries", "opponents", "rounds"
CONSIDERED = "considered"
_TRUTHS = {"true": True, "false": False}
HEURISTIC, PATH, MODEL, COMMAND = "heuristic", "run directory", "model", "command"
EXTERNAL = "external"
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
    EXTERNAL: PlayerKind(COMMAND),
}
NETWORKS = "PATH, net:PATH, search:PATH, pretrained:NAME"
KINDS = (
    "random, greedy, ethen, wjx, two-ply:ethen|wjx, heuristic-search:ethen|wjx[@simulations], "
    "exact, net:PATH, [search:]PATH[@simulations], pretrained:NAME[@simulations], "
    "external:COMMAND; PATH is a run, RUN/checkpoints/ITERATION or an exported folder; time such "
    "as @1s may stand for simulations, ?symmetries=8 behind all that has a network, and "
    "?opponents=maxn, ?rounds=true or ?considered=4 behind all that searches"
)


class PlayerName(NamedTuple):
    """A player's name, taken apart; a bare path has the kind `search`."""

    text: str  # as it was written
    kind: str
    target: str
    simulations: int | None  # None where none are said
    is_bare: bool = False
    seconds: float | None = None  # a move, in place of simulations
    symmetries: int = 1  # turned copies of a root that are evaluated
    opponents: str = ""  # of `search.opponents`; empty where the player's own is taken
    rounds: bool | None = None  # of `search.rounds`; None where the player's own is taken
    considered: int = 0  # of `search.player_max_considered_actions`; 0 where its own is taken

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
        said = [f"{SYMMETRIES}={self.symmetries}"] if self.symmetries > 1 else []
        said += [f"{OPPONENTS_KEY}={self.opponents}"] if self.opponents else []
        said += [] if self.rounds is None else [f"{ROUNDS}={str(self.rounds).lower()}"]
        said += [f"{CONSIDERED}={self.considered}"] if self.considered else []
        return f"?{'&'.join(said)}" if said else ""

    @property
    def has_network(self) -> bool:
        """Whether the player is trained."""
        return PLAYER_KINDS[self.kind].has_network

    @property
    def full(self) -> str:
        """The name with everything said: what tables show, and a name again."""
        made = PLAYER_KINDS[self.kind]
        target = f":{self.target}" if made.target else ""
        budget = self.budget_text if made.searches else ""
        return f"{self.kind}{target}{budget}{self.options_text}"

    def with_simulations(self, simulations: int) -> "PlayerName":
        """The player of this many simulations in place of its budget."""
        return self._replace(simulations=simulations, seconds=None)


def read_name(text: str) -> PlayerName:
    """Take a player's name apart.

    Raises:
      UsageError: there is no such kind, its target is missing, it takes no target or no
        simulations, or the name cannot be printed, as records of its games ask.
    """
    _check_printable(text)
    if text.startswith(f"{EXTERNAL}:") and text[len(EXTERNAL) + 1 :].strip():
        # The command is everything behind the colon, whatever it holds.
        return PlayerName(text, EXTERNAL, text[len(EXTERNAL) + 1 :], None)
    plain, options = _split_options(text)
    kind, colon, rest = plain.partition(":")
    if kind not in PLAYER_KINDS:
        path = _read_path(text)
        # With a separator it can only be a path: its reader says what is missing.
        if len(Path(path.target).parts) > 1 or (path.target and _exists(path.target)):
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
    if options is not None and not (made.has_network or made.searches):
        raise _error(text, f"{kind} takes no options")
    return _with(PlayerName(text, kind, target, None), budget, options)


def read_network_name(text: str) -> PlayerName:
    """Take the name of a trained player apart, where a network is asked for, not a player.

    A word that is no kind is a path, whether it exists or not.

    Raises:
      UsageError: players of this kind have no network, or as `read_name`.
    """
    _check_printable(text)
    kind = _split_options(text)[0].partition(":")[0]
    name = read_name(text) if kind in PLAYER_KINDS else _read_path(text)
    if not name.has_network:
        raise UsageError(f"player {text!r}: has no network; allowed: {NETWORKS}")
    return name


def _check_printable(text: str) -> None:
    if not text.isprintable():
        raise UsageError(f"player {text!r}: has a character that cannot be printed")


def _exists(path: str | Path) -> bool:
    """Whether there is such a path; `Path.exists` raises where a name is too long or a folder is
    closed to us."""
    return os.path.exists(path)


def _read_path(text: str) -> PlayerName:
    plain, options = _split_options(text)
    target, budget = _split_budget(plain)
    return _with(PlayerName(text, "search", target, None, is_bare=True), budget, options)


def _split_options(text: str) -> tuple[str, str | None]:
    """`name?options` in two; None without options. The path of a file may hold a question mark."""
    name, mark, options = text.rpartition("?")
    kind, _, rest = text.partition(":")
    path = rest if kind in PLAYER_KINDS else text
    target, _ = _split_budget(path)
    is_part_of_path = path.rfind("?") < len(target) and _exists(target)
    return (text, None) if not mark or is_part_of_path else (name, options)


def _split_budget(text: str) -> tuple[str, str | None]:
    """`target@budget` in two; None without a budget. The path of a file may hold an @."""
    target, at, budget = text.rpartition("@")
    return (text, None) if not at or _exists(text) else (target, budget)


def _with(name: PlayerName, budget: str | None, options: str | None) -> PlayerName:
    """A name with its budget and its options, as they are written."""
    if budget is not None:
        seconds = _read_seconds(name.text, budget)
        simulations = None if seconds else _read_simulations(name.text, budget)
        name = name._replace(simulations=simulations, seconds=seconds)
    return name if options is None else _with_options(name, options)


def _read_simulations(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= MAX_SIMULATIONS:
        raise UsageError(
            f"player {name!r}: {text!r} simulations; allowed: 1 to {MAX_SIMULATIONS}, or time "
            "such as 1s"
        )
    return int(text)


def _read_seconds(name: str, text: str) -> float | None:
    """Seconds of a budget such as `0.5s`; None where it is no time at all."""
    number = re.fullmatch("(-?[0-9.]+|-?[a-z]*)s", text)
    if number is None:
        return None
    try:
        seconds = float(number[1])
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= MAX_SECONDS:
        raise UsageError(
            f"player {name!r}: {text!r} a move; allowed: above 0s, up to {MAX_SECONDS:g}s"
        )
    return seconds


def _with_options(name: PlayerName, text: str) -> PlayerName:
    """A name with the options `key=value&...` that its kind takes."""
    kind, found = PLAYER_KINDS[name.kind], dict[str, str]()
    known = {SYMMETRIES: f"1 to {MAX_SYMMETRIES}"} if kind.has_network else {}
    if kind.searches:
        known |= {OPPONENTS_KEY: "|".join(OPPONENTS), ROUNDS: "|".join(_TRUTHS)}
        known |= {CONSIDERED: f"1 to {MAX_CONSIDERED}"}
    for word in text.split("&"):
        key, equals, value = word.partition("=")
        if key not in known or not equals:
            allowed = ", ".join(f"{one}={values}" for one, values in known.items())
            raise UsageError(f"player {name.text!r}: unknown option {word!r}; allowed: {allowed}")
        if key in found:
            raise UsageError(f"player {name.text!r}: {key} stands there twice")
        found[key] = value
    for key, words in ((OPPONENTS_KEY, OPPONENTS), (ROUNDS, _TRUTHS)):
        if key in found and found[key] not in words:
            raise UsageError(
                f"player {name.text!r}: {key} {found[key]!r}; allowed: {', '.join(words)}"
            )
    considered = found.get(CONSIDERED)
    return name._replace(
        symmetries=_read_count(name.text, SYMMETRIES, found.get(SYMMETRIES, "1"), MAX_SYMMETRIES),
        considered=(
            0
            if considered is None
            else _read_count(name.text, CONSIDERED, considered, MAX_CONSIDERED)
        ),
        opponents=found.get(OPPONENTS_KEY, ""),
        rounds=_TRUTHS[found[ROUNDS]] if ROUNDS in found else None,
    )


def _read_count(name: str, key: str, value: str, most: int) -> int:
    if not re.fullmatch("[0-9]{1,9}", value) or not 1 <= int(value) <= most:
        end = "; a budget stands before the ?" if "@" in value else ""
        raise UsageError(f"player {name!r}: {key} {value!r}; allowed: 1 to {most}{end}")
    return int(value)


def _unknown(text: str, target: str) -> UsageError:
    """The complaint about a word that is neither a kind nor a path."""
    if target and _exists(RUNS / target):
        return _error(text, f"unknown; did you mean {RUNS / text}?")
    near = difflib.get_close_matches(target, PLAYER_KINDS, n=1)
    return _error(text, f"unknown; did you mean {near[0]}?" if near else "unknown")


def _error(text: str, reason: str) -> UsageError:
    end = " Known" if reason.endswith("?") else "; known"
    return UsageError(f"player {text!r}: {reason}{end} players: {KINDS}")
