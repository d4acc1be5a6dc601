"""A model's card as a page in Markdown: how it was made, by which config, and how strong it is."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from train.config import RunConfig, config_from_dict
from train.config.keys import in_toml, keys_of
from train.config.rule_sets import rule_sets_in_words

_NOT_TRAINING = ("name", "evaluation", "checkpoint", "tracking")
"""Keys and tables that decide nothing about the weights."""


def card_page(card: dict[str, Any], *, player: str) -> str:
    """The page of a card.

    Args:
      card: as `train.checkpoints.exported` writes it; entries that it lacks are left out.
      player: the model's name as commands take it.
    """
    config = config_from_dict(card["config"], where="card")
    about = f"{config.network.blocks}, width {config.network.width}, planes {config.network.planes}"
    parts = [
        f"# {card['model']}",
        f"A player of WallGo, by the rules {rule_sets_in_words(config.rule_sets)} alone. It is "
        f"`{player}@64` in every command that takes a player. Network: {about}, "
        f"{card['parameters']:,} parameters; `weights.npz` has {card['bytes'] / 1000:,.0f} kB.",
        *_training(card),
        *_matches(card),
        *_curve(card.get("curve") or ()),
        *_time_to_strength(card.get("strength")),
        "## Config",
        "Keys that differ from the defaults; `card.json` has all of them.",
        f"```toml\n{_toml(config)}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _training(card: dict[str, Any]) -> list[str]:
    """Runs, hours, versions, and what a warm start took."""
    heads = ("run", "iteration", "seed", "began with", "hours", "compiling", "saving and matches")
    rows = []
    for stage in (*(card.get("stages") or []), card):
        config, hours = stage["config"], stage.get("hours")
        begin = config.get("start_weights") or config.get("init_from")
        times = ["not recorded", "", ""]
        if hours is not None:
            rest = hours["all"] - hours["training"] - hours["compiling"]
            times = [f"{part:.2f}" for part in (hours["training"], hours["compiling"], rest)]
        run, seed = f"`{stage.get('run')}`", str(config.get("seed", 0))
        begin = f"`{begin}`" if begin else "random weights"
        rows.append((run, str(stage.get("iteration")), seed, begin, *times))
    parts = ["## Training", _table(heads, rows)]
    for start in (card.get("starts") or [])[-1:]:
        versions, devices, git = start["versions"], start["devices"], start.get("git")
        named = ", ".join(f"{name} {versions[name]}" for name in ("wallgo-jax", "jax", "python"))
        revision = f", revision {git['revision'][:12]}" if git else ""
        changed = " with changes" if git and git["dirty"] else ""
        parts.append(
            f"Made by {named}{revision}{changed}, on {devices['count']} × {devices['kind']}, begun "
            f"{start['time'][:10]}; game version {start['env_version']}."
        )
    if transfer := card.get("transfer"):
        keys = ("taken", "new", "left")
        rows = [(part["name"], *(f"{part[key]:,}" for key in keys)) for part in transfer["parts"]]
        parts.append(f"Warm start from {transfer['source']}, in numbers of parameters:")
        parts.append(_table(("part", *keys), rows))
    return parts


def _matches(card: dict[str, Any]) -> list[str]:
    """The table of the final matches and of those that `export --matches` added."""
    final = card.get("evaluation") or {}
    shared = {key: final.get(key) for key in ("seed", "opening_plies", "players_place")}
    matches = [shared | match for match in final.get("matches", ())] + (card.get("matches") or [])
    if not matches:
        return []
    heads = ("player", "against", "won, drawn, lost", "win rate, 95 %", "openings", "seed")
    openings = (
        "Openings are random plies that both games of a pair start with; where they come after "
        "placements, the players have placed all stones."
    )
    rows = []
    for match in matches:
        low, high = match["interval_95"]
        by_rules = f" on `{match['rule_set']}`" if "rule_set" in match else ""
        placed = " after placements" if match.get("players_place") else ""
        counts = f"{match['wins']}, {match['draws']}, {match['losses']}"
        rate = f"{100 * match['win_rate']:.4g} % ({100 * low:.1f} to {100 * high:.1f})"
        plies = match.get("openings") or f"{match.get('opening_plies')}{placed}"
        pair = f"`{match['first']}`{by_rules}", f"`{match['second']}`"
        rows.append((*pair, counts, rate, plies, str(match.get("seed"))))
    return ["## Matches", openings, _table(heads, rows)]


def _curve(curve: Sequence[dict[str, Any]]) -> list[str]:
    """The table of a run's short matches."""
    if not curve:
        return []
    anchors = list(dict.fromkeys(name for point in curve for name in point["matches"]))
    rows = []
    for point in curve:
        rates = [point["matches"].get(name) for name in anchors]
        texts = ["" if rate is None else f"{100 * rate:.4g} %" for rate in rates]
        rows.append((str(point["iteration"]), f"{point['hours']:.2f}", *texts))
    table = _table(("iteration", "hours", *(f"`{name}`" for name in anchors)), rows)
    return ["## Curve", "Win rates in the short matches of the run.", table]


def _time_to_strength(strength: dict[str, Any] | None) -> list[str]:
    """The table of `bench --what strength`, and when levels were passed."""
    if not strength:
        return []
    rows = [
        (str(p["iteration"]), f"{p['minutes']:.2f}", f"{100 * p['rate']:.4g} %", str(p["games"]))
        for p in strength["points"]
    ]
    passings = []
    for each in strength["passings"]:
        minutes = [each[key] for key in ("minutes", "low", "high")]
        texts = ["not passed" if each is None else f"{each:.2f}" for each in minutes]
        passings.append((f"{100 * each['level']:g} %", *texts))
    earlier = strength.get("earlier") or {"minutes": 0, "unrecorded": ()}
    before = f", {earlier['minutes']:.2f} of them in stages before" if earlier["minutes"] else ""
    if earlier["unrecorded"]:
        before += f", those of {', '.join(earlier['unrecorded'])} not recorded"
    return [
        "## Time to strength",
        f"Checkpoints with {strength['simulations']} simulations against "
        f"`{strength['opponent']}`, {strength['opening_plies']} random opening plies, seed "
        f"{strength['seed']}; minutes are those of self-play and learning{before}.",
        _table(("iteration", "minutes", "win rate", "games"), rows),
        _table(("level", "passed after minutes", "95 % from", "to"), passings),
    ]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _toml(config: RunConfig) -> str:
    """The keys that decide the weights and differ from their defaults, as TOML."""
    named = ("seed", "iterations", "rules")
    keys = [
        key
        for key in keys_of(config)
        if (key.path in named or key.is_changed) and key.path.partition(".")[0] not in _NOT_TRAINING
    ]
    lines = []
    for table, group in itertools.groupby(keys, key=lambda key: key.table):
        lines += ["", f"[{table}]"] if table else []
        lines += [f"{key.name} = {in_toml(key.value)}" for key in group]
    return "\n".join(lines)
