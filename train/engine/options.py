"""Options of an engine, in a file without jax, so that the command line is quick."""

import dataclasses

from train.search.config import MAX_SIMULATIONS

MAX_SECONDS = 600.0


@dataclasses.dataclass(frozen=True)
class EngineOptions:
    """Sizes that an engine is compiled for, and the budget of an answer.

    Attributes:
      batch_sizes: numbers of sessions that are searched in one batch, ascending; a batch is padded
        to the next of them [sessions].
      chunk: simulations between two looks at what else is asked, at the most [simulations].
      simulations: of an answer where neither the session nor the question says [simulations].
      nodes: room of a session's tree; an answer has at most one simulation less [nodes].
      trees: trees that are kept; with more sessions the one that was not searched for the longest
        time begins anew [trees].
      keeps_trees: goes on from the subtree of the moves that were played; else each answer is
        searched anew.
      seed: of moves that are drawn with a temperature.
    """

    batch_sizes: tuple[int, ...] = (1, 4, 16, 64, 256)
    chunk: int = 16
    simulations: int = 64
    nodes: int = 1024
    trees: int = 256
    keeps_trees: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        sizes = self.batch_sizes
        if not sizes or sizes[0] < 1 or list(sizes) != sorted(set(sizes)):
            raise ValueError(f"batch sizes {sizes} must be ascending numbers from 1 on")
        if self.chunk < 1:
            raise ValueError(f"chunk ({self.chunk}) must be at least 1")
        if not 2 <= self.nodes <= MAX_SIMULATIONS + 1:
            raise ValueError(f"nodes ({self.nodes}) must be from 2 to {MAX_SIMULATIONS + 1}")
        if not 0 <= self.simulations < self.nodes:
            raise ValueError(
                f"simulations ({self.simulations}) must be from 0 to {self.nodes - 1}, one less "
                "than a tree has nodes"
            )
        if self.trees < sizes[-1]:
            raise ValueError(
                f"trees ({self.trees}) must be at least the largest batch, {sizes[-1]}"
            )
