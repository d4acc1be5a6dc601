"""Options of self-play and replay."""

import dataclasses

MEMORIES = ("device", "host")


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig:
    """Amount of self-play in an iteration, and depth of its searches.

    Attributes:
      boards: boards played in parallel [boards].
      plies: plies of each board in an iteration [plies].
      full_search_prob: playout cap randomisation: chance that a ply is searched in full; one coin
        for all boards (the built-in quickstart has 0.25) [0 to 1]. The other plies get
        `cheap_simulations` without noise, and their policies are not learned. This is after Wu,
        "Accelerating Self-Play Learning in Go" (2019), section 3.1, with one coin for the boards of
        all devices: the batch stays full, and no device waits for one that has drawn more full
        searches.
      cheap_simulations: budget of the other plies, whose policies are not learned [simulations].
        It is at most that of a full search.
      policy_surprise_weight: share of the policy weight that follows the divergence of search and
        network [0 to 1]. This is after Wu, "Other Methods Implemented in KataGo", section Policy
        Surprise Weighting. KataGo uses 0.5 and weights whole samples, this weights policies only.
      bootstrap_iterations: first iterations, played by the greedy player in place of the search
        [iterations].
    """

    boards: int = 256
    plies: int = 32
    full_search_prob: float = 1.0
    cheap_simulations: int = 4
    policy_surprise_weight: float = 0.0
    bootstrap_iterations: int = 0

    def __post_init__(self) -> None:
        for key in ("boards", "plies", "cheap_simulations"):
            if getattr(self, key) < 1:
                raise ValueError(f"{key} must be at least 1")
        if not 0 < self.full_search_prob <= 1:
            raise ValueError("full_search_prob must be above 0, at most 1")
        if self.bootstrap_iterations < 0:
            raise ValueError("bootstrap_iterations must not be negative")
        if not 0 <= self.policy_surprise_weight <= 1:
            raise ValueError("policy_surprise_weight must be from 0 to 1")


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """Number of positions that are kept to learn from, and their place.

    Attributes:
      positions: capacity of the replay, rounded up to whole iterations [positions].
      memory: where it lies and is sampled: `device` or `host`. `host` is for devices with too
        little memory; the CPU then samples.
    """

    positions: int = 200_000
    memory: str = "device"

    def __post_init__(self) -> None:
        if self.positions < 1:
            raise ValueError("positions must be at least 1")
        if self.memory not in MEMORIES:
            raise ValueError(f"memory {self.memory!r} is not one of {', '.join(MEMORIES)}")
