"""How the changes of an ablation are compared: lengths, seeds and matches."""

import dataclasses

from train.runtime.errors import UsageError


@dataclasses.dataclass(frozen=True)
class Options:
    """How changes are compared.

    Attributes:
      minutes: wall time of each training, compiling, saving and matches apart.
      seeds: how many paired seeds.
      games: games of each seed's match, shared among `opening_plies`.
      simulations: search budget of a move in the matches.
      opening_plies: numbers of random plies that games start with; all matches of a seed start from
        the same openings.
      first_seed: the first seed; the others follow it.

    Raises:
      UsageError: a number that no study can have.
    """

    minutes: float = 10.0
    seeds: int = 6
    games: int = 200
    simulations: int = 64
    opening_plies: tuple[int, ...] = (2, 6)
    first_seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.minutes < float("inf"):
            raise UsageError(f"ablate: minutes ({self.minutes}) must be a number above 0")
        for key in ("seeds", "simulations"):
            if getattr(self, key) < 1:
                raise UsageError(f"ablate: {key} ({getattr(self, key)}) must be at least 1")
        last = 2**31 - self.seeds
        if not 0 <= self.first_seed <= last:
            raise UsageError(f"ablate: first_seed ({self.first_seed}) must be from 0 to {last}")
        parts = len(self.opening_plies)
        if not parts or len(set(self.opening_plies)) < parts or min(self.opening_plies) < 0:
            raise UsageError("ablate: opening_plies must be different numbers from 0 on")
        if self.games < 2 * parts or self.games % (2 * parts):
            raise UsageError(
                f"ablate: games ({self.games}) must be a multiple of {2 * parts}, two colours for "
                f"each of {parts} opening_plies"
            )

    @property
    def all_seeds(self) -> range:
        """The seeds, in order."""
        return range(self.first_seed, self.first_seed + self.seeds)
