"""Names of metrics in TensorBoard and Weights & Biases, grouped: `loss/policy`, `speed/...`."""

from train.metrics.rows import Row, flat_figures

_GROUPS = {
    "selfplay": (
        *("games", "positions", "mean_length", "red_win_rate", "simulations"),
        *("full_search_share", "drawn_share", "policy_entropy"),
        *(f"policy_entropy_{name}" for name in ("placement", "opening", "middle", "late")),
        *("policy_entropy_steps", "policy_entropy_wall"),
        *(f"policy_entropy_{name}" for name in ("stay", "one_step", "two_steps")),
        *(f"policy_share_{name}" for name in ("stay", "one_step", "two_steps")),
        *("distinct_setups", "commonest_setups", "distinct_openings", "commonest_openings"),
        "learner_win_rate",
        *(f"learner_win_rate_{colour}" for colour in ("red", "blue", "green", "yellow")),
    ),
    "replay": ("replay_positions", "reuse"),
    "speed": (
        *("games_per_second", "positions_per_second", "selfplay_seconds", "learn_seconds"),
        *("compile_seconds", "elapsed_seconds"),
    ),
    "evaluation": ("win_rate",),
    "learner": ("steps", "accuracy", "gradient_norm", "largest_gradient_norm"),
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names}
_NOT_DRAWN = ("iteration", "wall_time")


def scalars_of(row: Row) -> dict[str, float]:
    """The numbers of a row by their grouped names.

    Losses are `loss/total`, `loss/policy` and so on, those on games held back `validation/...`; the
    win rate of each short match is `evaluation/win_rate/OPPONENT`. Figures of one rule set of
    several are `rules/NAME/...` (see `flat_figures`). Intervals are left out.
    """
    return {
        _tag_of(name): float(value)
        for name, value in flat_figures(row).items()
        if name not in _NOT_DRAWN
        and isinstance(value, int | float)
        and not {"low", "high"} & {*name.split("/")[:2]}
    }


def _tag_of(name: str) -> str:
    if "/" in name:
        return f"evaluation/{name}" if name.startswith("win_rate/") else f"rules/{name}"
    if name in _GROUP_OF:
        return f"{_GROUP_OF[name]}/{name.removeprefix('replay_')}"
    if name.startswith("validation_"):
        return f"validation/{_loss_name(name.removeprefix('validation_'))}"
    return f"loss/{_loss_name(name)}"


def _loss_name(name: str) -> str:
    return "total" if name == "loss" else name.removesuffix("_loss")
