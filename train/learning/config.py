"""Options of learning: the optimizer, its schedule and the weights of the losses."""

import dataclasses

OPTIMIZERS = ("adamw", "sgd")
SCHEDULES = ("cosine", "steps")


@dataclasses.dataclass(frozen=True)
class LossWeights:
    """Weight of each head's loss in the sum; weights of heads that the network lacks are idle.

    Attributes:
      policy: cross-entropy with the search's policy.
      value: squared error of the outcome, or its cross-entropy for a `wdl` value head.
      ownership: cross-entropy with the owner of each cell at the end, mean over the cells.
      margin: squared error of the final lead in territory, as a share of the board.
      reply: cross-entropy with the policy of the next ply.
    """

    policy: float = 1.0
    value: float = 1.0
    ownership: float = 0.5
    margin: float = 1.0
    reply: float = 0.15

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if not 0 <= getattr(self, field.name) < float("inf"):
                raise ValueError(f"{field.name} must be a number from 0 on")


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
    """How the network learns.

    Attributes:
      batch: samples a step.
      steps: steps an iteration.
      optimizer: `adamw`, or `sgd` with momentum.
      momentum: momentum of `sgd`.
      learning_rate: peak of the schedule.
      schedule: what follows the linear warm-up: `cosine` falls to `final_rate` of the peak, `steps`
        halves the rate at each of `lr_drops` (ResTNet's 0.02, 0.01, 0.005).
      final_rate: last learning rate of `cosine`, as a share of the peak.
      lr_drops: shares of the run at which `steps` halves the rate.
      warmup: steps of warm-up.
      weight_decay: decay of kernels only, not of norms, biases and offset tables; decoupled for
        `adamw`, added to the gradient for `sgd`.
      max_grad_norm: global norm that gradients are clipped to.
      symmetry: turn each sample by a random symmetry of the square.
      ema_decay: decay a step of a moving average of the weights, which then plays in self-play and
        matches; 0 for no average.
      weights: weights of the losses.
    """

    batch: int = 512
    steps: int = 32
    optimizer: str = "adamw"
    momentum: float = 0.9
    learning_rate: float = 3e-3
    schedule: str = "cosine"
    final_rate: float = 0.1
    lr_drops: tuple[float, ...] = (0.7, 0.9)
    warmup: int = 50
    weight_decay: float = 1e-4
    max_grad_norm: float = 1.0
    symmetry: bool = True
    ema_decay: float = 0.0
    weights: LossWeights = dataclasses.field(default_factory=LossWeights)

    def __post_init__(self) -> None:
        if self.batch < 1 or self.steps < 1 or self.warmup < 0:
            raise ValueError("batch and steps must be at least 1, warmup at least 0")
        if min(self.learning_rate, self.max_grad_norm) <= 0 or self.weight_decay < 0:
            raise ValueError(
                "learning_rate and max_grad_norm must be positive, weight_decay not negative"
            )
        for key, allowed in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES)):
            if getattr(self, key) not in allowed:
                raise ValueError(f"{key} {getattr(self, key)!r} is not one of {', '.join(allowed)}")
        if not all(0 <= share < 1 for share in (self.momentum, self.ema_decay)):
            raise ValueError("momentum and ema_decay must be from 0 to below 1")
        if not 0 <= self.final_rate <= 1:
            raise ValueError("final_rate must be from 0 to 1")
        if not all(0 < share < 1 for share in self.lr_drops) or list(self.lr_drops) != sorted(
            self.lr_drops
        ):
            raise ValueError("lr_drops must be shares between 0 and 1 in rising order")
