"""Ratios of figures: programs over their networks, parts of self-play, WallGo over peers."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from train.bench import alphazero, games, search, table1, trainer
from train.bench.timing import BenchRow

ONE_DEVICE = ", one device"
SHARED_KINDS = (search.NETWORK, search.PLANES, search.UNIFORM)
RANDOM_PLAY = "random play"
SHARED = (trainer.SELFPLAY, *(f"moves by {kind}" for kind in SHARED_KINDS), RANDOM_PLAY)
"""Programs of which each does less than the one before.

Every ply is searched in full. Without a network values are 0 and priors equal, so trees have
another shape. Random play also draws its plies and restarts games, and scores none: what scores
cost is with the trees, and what the slots' logits cost is with the planes.
"""
SHARE_NAMES = ("plies kept, openings, counts", "network", "planes", "trees", "the game")
"""The parts of self-play, each what the program of its place takes more than the next."""


class Ratio(NamedTuple):
    """A rate divided by another of the same batch; batch 0 stands for the better batch of each."""

    name: str
    batch: int
    value: float


def ratios(rows: Sequence[BenchRow]) -> Iterator[Ratio]:
    """Ratios of the figures of rows.

    Batch by batch: the time of self-play over that of its network, the time of the learner over
    that of its network, the parts of self-play in percent of its time, and the paper's networks.
    Then speeds of WallGo over those of the baselines, at the better batch and the better
    way of each (batch 0).
    """
    for batch in dict.fromkeys(row.batch for row in rows):
        for name, value in _of_a_batch([row for row in rows if row.batch == batch]):
            yield Ratio(name, batch, value)
    for part, unit, mark in (("env", "plies", "pgx"), ("search", "simulations", "mctx")):
        best: dict[str, float] = {}
        for row in (row for row in rows if row.part == part and unit in row.rates):
            for name in _counts_for(row.name):
                best[name] = max(best.get(name, 0.0), row.rates[unit])
        for peer in (name for name in best if name.startswith(mark)):
            for ours in (name for name in best if not name.startswith(mark)):
                # Both read planes or neither does; both evaluate a network or neither does.
                reads = ours.startswith(games.ENV) == peer.endswith("planes")
                if reads and ours.endswith(search.WITHOUT) == peer.endswith(search.WITHOUT):
                    yield Ratio(f"{unit} of {ours} over {peer}", 0, best[ours] / best[peer])
    for unit in ("positions", "evaluations"):
        ours, peer = (
            max((row.rates[unit] for row in rows if row.name.startswith(name)), default=0.0)
            for name in (trainer.SELFPLAY, alphazero.LOOP)
        )
        if ours and peer:
            yield Ratio(f"{unit} of {trainer.SELFPLAY} over {alphazero.LOOP}", 0, ours / peer)


def _of_a_batch(rows: Sequence[BenchRow]) -> Iterator[tuple[str, float]]:
    rate = {(row.part, row.name): row.rates for row in rows}
    for part, name, pure, unit in (
        ("selfplay", trainer.SELFPLAY, trainer.FORWARD, "evaluations"),
        ("learn", trainer.LEARNER, trainer.BACKWARD, "steps"),
    ):
        whole, network = rate.get((part, name)), rate.get((part, pure))
        if network and whole:
            yield f"time of {name} over {pure}", network[unit] / whole[unit]
    shared = [rate.get(("selfplay", name)) for name in SHARED]
    if all(shared):
        times = [1 / _evaluations(each) for each in shared if each]
        for name, time, less in zip(SHARE_NAMES, times, [*times[1:], 0.0], strict=True):
            yield f"percent of {trainer.SELFPLAY}: {name}", 100 * (time - less) / times[0]
    yield from table1.times([row for row in rows if row.part == "table1"])


def _evaluations(rates: dict[str, float]) -> float:
    """Evaluations a second: a move's are its root's and one a simulation, random play has one a
    ply."""
    if "moves" in rates:
        return rates["moves"] + rates["simulations"]
    return rates["plies"] if "plies" in rates else rates["evaluations"]


def _counts_for(name: str) -> list[str]:
    """The names whose best speed a row counts for, so that ratios are to the better way: a game on
    one device for the game, a peer played the plain way for the peer with planes and without."""
    base = name.removesuffix(ONE_DEVICE)
    if not base.endswith(games.PLAIN):
        return [base]
    base = base.removesuffix(games.PLAIN)
    if base.startswith("pgx"):
        return [base, f"{base}, planes"]
    return [base.removesuffix(f", {games.OWN_DRAW}")]
