"""Options of an engine, in a file without jax, so that the command line is quick."""

import dataclasses
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from train.runtime.errors import UsageError
from train.runtime.fields import AtLeastOne, Seed, Whole
from train.search.config import MAX_SIMULATIONS

_LEAST, _OF_TIME = 1024, 4096
"""Default size of a tree: its minimum, and the size for time budgets."""


@dataclass(frozen=True)
class EngineOptions:
    """Sizes that an engine is compiled for, and how it searches.

    Attributes:
      batch_sizes: numbers of sessions that are searched in one batch, ascending; a batch is padded
        to the next of them [sessions].
      chunk: simulations between two looks at what else is asked, at the most [simulations].
      nodes: room of a session's tree; an answer has at most one simulation less. 0 for four times
        the player's budget, at least 1024, and for 4096 if that is time [nodes].
      trees: trees that are kept; with more sessions the one that was not searched for the longest
        time begins anew [trees].
      keeps_trees: goes on from the subtree of the moves that were played; else each answer is
        searched anew.
      seed: of moves that are drawn with a temperature.
    """

    batch_sizes: Annotated[tuple[AtLeastOne, ...], Field(min_length=1)] = (1, 8, 64, 256)
    chunk: AtLeastOne = 16
    nodes: Literal[0] | Annotated[Whole, Field(ge=2, le=MAX_SIMULATIONS + 1)] = 0
    trees: Whole = 256
    keeps_trees: bool = True
    seed: Seed = 0

    def __post_init__(self) -> None:
        largest = self.batch_sizes[-1]
        if self.trees < largest:
            raise ValueError(f"trees ({self.trees}) must be at least the largest batch, {largest}")

    def for_budget(self, simulations: int | None) -> "EngineOptions":
        """The options with room for answers of a player's budget; None for one of time.

        Raises:
          UsageError: there is less room than the budget.
        """
        wanted = _OF_TIME if simulations is None else max(_LEAST, 4 * simulations)
        nodes = self.nodes or min(wanted, MAX_SIMULATIONS + 1)
        if simulations is not None and simulations >= nodes:
            raise UsageError(f"{simulations} simulations do not fit in a tree of {nodes} nodes")
        return dataclasses.replace(self, nodes=nodes)
