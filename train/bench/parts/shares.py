"""Where the time of self-play goes, by parts that add up.

A part is what the next program takes less:

    self-play of an iteration       - keeps plies, draws openings, counts
    moves by search, with network   - evaluates leaves
    moves by search, planes alone   - works out the planes of each leaf
    moves by search, no planes      - grows and reads trees
    random play                     - steps and legal slots: the game itself

Every ply is searched in full. Without a network values are 0 and priors equal, so trees have
another shape: the parts of planes and trees are those of such trees. Random play also draws its
plies and restarts games, and scores none: what scores cost is with the trees, and what the slots'
logits cost is with the planes.
"""

from collections.abc import Callable, Iterator, Sequence

from train.bench.harness import play
from train.bench.harness.timing import Bench
from train.bench.parts import search, selfplay
from train.bench.parts.games import core_game
from train.config import RunConfig
from train.runtime.devices import Devices

_KINDS = (search.NETWORK, search.PLANES, search.UNIFORM)
_GAME = "random play"
PROGRAMS = (selfplay.SELFPLAY, *(f"moves by {kind}" for kind in _KINDS), _GAME)
"""Names of the programs in the order of the module's head."""
PARTS = ("plies kept, openings, counts", "network", "planes", "trees", "the game")
"""The parts of self-play, each what the program of its place takes more than the next."""


def makers(config: RunConfig, boards: int, devices: Devices) -> Iterator[Callable[[], Bench]]:
    """Functions that compile the programs, but for self-play itself."""
    count = config.search.simulations
    for kind, name in zip(_KINDS, PROGRAMS[1:], strict=False):
        found = search.searcher(kind, config, count)._replace(name=name)
        yield lambda found=found: search.make_bench(found, config.rules, boards, count, devices)
    game = core_game(config.rules, on_bits=False)._replace(name=_GAME)
    yield lambda: play.make_bench(game, boards, devices)


def percents(rates: Sequence[dict[str, float]]) -> list[tuple[str, float]]:
    """The parts of self-play in percent of its time, from the rates of PROGRAMS."""
    times = [1 / _evaluations(each) for each in rates]
    parts = [time - less for time, less in zip(times, [*times[1:], 0.0], strict=True)]
    return [(name, 100 * part / times[0]) for name, part in zip(PARTS, parts, strict=True)]


def _evaluations(rates: dict[str, float]) -> float:
    """Evaluations a second: a move's are its root's and one a simulation, random play has one a
    ply."""
    if "moves" in rates:
        return rates["moves"] + rates["simulations"]
    return rates["plies"] if "plies" in rates else rates["evaluations"]
