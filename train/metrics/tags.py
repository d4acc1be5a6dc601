"""Names of metrics in TensorBoard and Weights & Biases, grouped: `loss/policy`, `speed/...`."""

from train.metrics.rows import BY_RULES, MATCHES_BY_RULES, Row

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
    several are `rules/NAME/...` (see `by_rules`).
    """
    found = {
        _tag_of(name): float(value)
        for name, value in row.items()
        if name not in _NOT_DRAWN and isinstance(value, int | float)
    }
    for opponent, rate in row.get("matches", {}).items():
        found[f"evaluation/win_rate/{opponent}"] = float(rate)
    found |= {f"rules/{path}": value for path, value in by_rules(row).items()}
    return found


def by_rules(row: Row) -> dict[str, float]:
    """The numbers of a row that are one rule set's, such as `hkoi/mean_length`, `hkoi/elo/wjx`."""
    found = {
        f"{name}/{figure}": float(value)
        for name, figures in row.get(BY_RULES, {}).items()
        for figure, value in figures.items()
        if value is not None
    }
    for key, figure in zip(MATCHES_BY_RULES[::2], ("win_rate", "elo"), strict=True):
        for name, matches in row.get(key, {}).items():
            for opponent, value in matches.items():
                if value is not None:
                    found[f"{name}/{figure}/{opponent}"] = float(value)
    return found


def _tag_of(name: str) -> str:
    if name in _GROUP_OF:
        return f"{_GROUP_OF[name]}/{name.removeprefix('replay_')}"
    if name.startswith("validation_"):
        return f"validation/{_loss_name(name.removeprefix('validation_'))}"
    return f"loss/{_loss_name(name)}"


def _loss_name(name: str) -> str:
    return "total" if name == "loss" else name.removesuffix("_loss")
