"""Options of self-play and replay."""

import dataclasses

MEMORIES = ("device", "host")


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig:
    """How much self-play an iteration holds, and how deep it searches.

    Attributes:
      boards: boards played in parallel.
      plies: plies of every board in one iteration.
      full_search_prob: chance of a ply to get the full search, drawn once for all boards. The other
        plies get `cheap_simulations` without noise, and their policies are not learned. This is
        playout cap randomization after Wu, "Accelerating Self-Play Learning in Go" (2019), section
        3.1, with one coin for the boards of all devices: the batch stays full, and no device waits
        for one that has drawn more full searches.
      cheap_simulations: simulations of a cheap ply, at most those of a full one.
      policy_surprise_weight: share of the policy weight that is given out by how far the search
        moved away from the network's policy, after Wu, "Other Methods Implemented in KataGo",
        section Policy Surprise Weighting. KataGo uses 0.5 and weights whole samples, this weights
        policies only.
      bootstrap_iterations: iterations at the start in which the greedy player moves in place of the
        search.
    """

    boards: int = 256
    plies: int = 32
    full_search_prob: float = 1.0
    cheap_simulations: int = 4
    policy_surprise_weight: float = 0.0
    bootstrap_iterations: int = 0

    def __post_init__(self) -> None:
        if self.boards < 1 or self.plies < 1:
            raise ValueError("boards and plies must be at least 1")
        if not 0 < self.full_search_prob <= 1:
            raise ValueError("full_search_prob must be above 0, at most 1")
        if self.cheap_simulations < 1:
            raise ValueError("cheap_simulations must be at least 1")
        if self.bootstrap_iterations < 0:
            raise ValueError("bootstrap_iterations must not be negative")
        if not 0 <= self.policy_surprise_weight <= 1:
            raise ValueError("policy_surprise_weight must be from 0 to 1")


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """How many positions are kept to learn from, and where.

    Attributes:
      positions: plies kept, rounded up to whole iterations.
      memory: `device`, or `host` where the device has too little memory; the CPU then samples.
    """

    positions: int = 200_000
    memory: str = "device"

    def __post_init__(self) -> None:
        if self.positions < 1:
            raise ValueError("positions must be at least 1")
        if self.memory not in MEMORIES:
            raise ValueError(f"memory {self.memory!r} is not one of {', '.join(MEMORIES)}")
