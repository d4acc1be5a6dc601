"""A model's card as a page in Markdown: how it was made, by which config, and how strong it is."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from train.config import RunConfig, config_from_dict
from train.config.keys import Key, keys_of
from train.config.rule_sets import rule_sets_in_words
from train.config.toml_text import in_toml
from wallgo_jax.game.rules import PRESETS, name_of

_NOT_TRAINING = ("name", "evaluation", "checkpoint", "tracking")
"""Keys and tables that decide nothing about the weights."""


_OPENINGS = (
    "Openings are random plies that both games of a pair start with; where they come after "
    "placements, the players have placed all stones."
)


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
        f"A player of WallGo, by {_rules(config)} alone. It is `{player}@64` in every command that "
        "takes a player.",
        f"- **Network**: {about}, {card['parameters']:,} parameters; `weights.npz` has "
        f"{card['bytes'] / 1000:,.0f} kB.",
        *_origin(card, config),
        *_strength(card),
        "## Config",
        "Keys that differ from the defaults; `card.json` has all of them.",
        f"```toml\n{_toml(config)}\n```",
    ]
    return _joined(parts)


def _rules(config: RunConfig) -> str:
    if config.mix:
        return f"the rule sets {rule_sets_in_words(config.mix)}"
    name, size = name_of(config.rules), config.rules.size
    return f"the rules `{name}`" if name in PRESETS else f"rules of its own on {size}×{size}"


def _joined(parts: Iterable[str]) -> str:
    """Blocks with an empty line between them, lists without."""
    text = ""
    for part in parts:
        is_list = part.startswith("- ") and text.rsplit("\n\n", 1)[-1].startswith("- ")
        text += ("\n" if is_list else "\n\n") * bool(text) + part
    return text + "\n"


def _origin(card: dict[str, Any], config: RunConfig) -> list[str]:
    """Runs, hours and versions."""
    own = {key: card.get(key) for key in ("run", "iteration", "hours", "starts")}
    stages = [*(card.get("stages") or []), own | {"config": card["config"]}]
    if len(stages) == 1:
        begin = config.start_weights or config.init_from
        began = f", from `{begin}`" if begin else ""
        parts = [f"- **Training**: run {_run(stages[0])}{began}, {_hours(stages[0])}."]
    else:
        begins = [_began_with(stage["config"]) for stage in stages]
        rows = [
            (str(number), _run(stage), f"`{begin}`" if begin else "random", _hours(stage))
            for number, (stage, begin) in enumerate(zip(stages, begins, strict=True), start=1)
        ]
        total = f"- **Training**: {len(stages)} stages, {_total(stages)}; the last one's config "
        total += "stands below, `card.json` has the others'."
        parts = [total, _table(("stage", "run", "began with", "time"), rows)]
    starts = card.get("starts") or []
    made = [_made_by(starts[-1])] if starts else []
    return [*parts[:1], *made, *_warm_start(card.get("transfer")), *parts[1:]]


def _began_with(config: dict[str, Any]) -> str:
    return config.get("start_weights") or config.get("init_from") or ""


def _warm_start(transfer: dict[str, Any] | None) -> list[str]:
    """What the run took of the weights that it began with; empty where it took all or none."""
    if not transfer:
        return []
    parts, told = transfer["parts"], []
    for word, others in (("taken", ("new", "left")), ("new", ("taken",)), ("left", ("taken",))):
        names = [p["name"] for p in parts if p[word] and not any(p[other] for other in others)]
        told += [f"{word}: {', '.join(names)}"] if names else []
    in_part = [p["name"] for p in parts if p["taken"] and (p["new"] or p["left"])]
    told += [f"in part: {', '.join(in_part)}"] if in_part else []
    return [f"- **Warm start** from {transfer['source']}; {'; '.join(told)}."]


def _run(stage: dict[str, Any]) -> str:
    seed = stage["config"].get("seed", 0)
    iteration = stage.get("iteration")
    told = "" if iteration is None else f", iteration {iteration}"
    return f"`{stage['run']}`{told}, seed {seed}"


def _hours(stage: dict[str, Any]) -> str:
    hours = stage.get("hours")
    if hours is None:
        return "hours not recorded"
    rest = hours["all"] - hours["training"] - hours["compiling"]
    return (
        f"{hours['training']:.2f} hours ({hours['compiling']:.2f} of compiling and {rest:.2f} of "
        "saving and matches apart)"
    )


def _total(stages: Sequence[dict[str, Any]]) -> str:
    hours = [stage["hours"]["training"] for stage in stages if stage.get("hours")]
    told = f"{sum(hours):.2f} hours of training in all"
    return told if len(hours) == len(stages) else f"{told}, as far as recorded"


def _made_by(start: dict[str, Any]) -> str:
    versions, devices = start["versions"], start["devices"]
    named = ", ".join(f"{name} {versions[name]}" for name in ("wallgo-jax", "jax", "python"))
    git = start.get("git")
    revision = f", revision {git['revision'][:12]}" if git else ""
    changed = " with changes" if git and git["dirty"] else ""
    return (
        f"- **Made by**: {named}{revision}{changed}, on {devices['count']} × {devices['kind']}, "
        f"begun {start['time'][:10]}; game version {start['env_version']}."
    )


def _strength(card: dict[str, Any]) -> list[str]:
    """The tables of matches and curves that there are."""
    final = card.get("evaluation") or {}
    shared = {key: final.get(key) for key in ("seed", "opening_plies", "players_place")}
    matches = [shared | match for match in final.get("matches", ())] + (card.get("matches") or [])
    parts = []
    if matches:
        heads = ("player", "against", "won, drawn, lost", "win rate, 95 %", "openings", "seed")
        if any("rule_set" in match for match in matches):
            matches = [
                match | {"first": f"{match['first']}` on `{match.get('rule_set', match['rules'])}"}
                for match in matches
            ]
        parts += ["## Matches", _OPENINGS]
        parts.append(_table(heads, map(_match_row, matches)))
    if card.get("curve"):
        parts += ["## Curve", "Win rates in the short matches of the run.", _curve(card["curve"])]
    strength = card.get("strength")
    if strength:
        parts += ["## Time to strength", _caption(strength), _strength_table(strength)]
        parts.append("\n".join(map(_passing, strength["passings"])))
    return parts


def _match_row(match: dict[str, Any]) -> tuple[str, ...]:
    low, high = match["interval_95"]
    return (
        f"`{match['first']}`",
        f"`{match['second']}`",
        f"{match['wins']}, {match['draws']}, {match['losses']}",
        f"{100 * match['win_rate']:.4g} % ({100 * low:.1f} to {100 * high:.1f})",
        _openings_of(match),
        str(match.get("seed")),
    )


def _openings_of(match: dict[str, Any]) -> str:
    if match.get("openings"):
        return match["openings"]
    placed = " after placements" if match.get("players_place") else ""
    return f"{match.get('opening_plies')}{placed}"


def _curve(curve: Sequence[dict[str, Any]]) -> str:
    anchors = list(dict.fromkeys(name for point in curve for name in point["matches"]))
    rows = []
    for point in curve:
        rates = [point["matches"].get(name) for name in anchors]
        told = ["" if rate is None else f"{100 * rate:.4g} %" for rate in rates]
        rows.append((str(point["iteration"]), f"{point['hours']:.2f}", *told))
    return _table(("iteration", "hours", *(f"`{name}`" for name in anchors)), rows)


def _caption(strength: dict[str, Any]) -> str:
    earlier = strength.get("earlier") or {"minutes": 0, "unrecorded": ()}
    told = f", {earlier['minutes']:.2f} of them in stages before" if earlier["minutes"] else ""
    if earlier["unrecorded"]:
        told += f", those of {', '.join(earlier['unrecorded'])} not recorded"
    return (
        f"Checkpoints with {strength['simulations']} simulations against "
        f"`{strength['opponent']}`, {strength['opening_plies']} random opening plies, seed "
        f"{strength['seed']}; minutes are those of self-play and learning{told}."
    )


def _strength_table(strength: dict[str, Any]) -> str:
    rows = [
        (str(p["iteration"]), f"{p['minutes']:.2f}", f"{100 * p['rate']:.4g} %", str(p["games"]))
        for p in strength["points"]
    ]
    return _table(("iteration", "minutes", "win rate", "games"), rows)


def _passing(passed: dict[str, Any]) -> str:
    level = f"- {100 * passed['level']:g} %"
    if passed["minutes"] is None:
        return f"{level}: not passed"
    most = "beyond the end" if passed["high"] is None else f"{passed['high']:.2f}"
    return f"{level}: {passed['minutes']:.2f} minutes (95 %: {passed['low']:.2f} to {most})"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _toml(config: RunConfig) -> str:
    """The keys that decide the weights and differ from their defaults, as TOML."""
    keys = [key for key in keys_of(config) if _decides(key)]
    lines = []
    for table, group in itertools.groupby(keys, key=lambda key: key.table):
        lines += ["", f"[{table}]"] if table else []
        lines += [f"{key.name} = {in_toml(key.value)}" for key in group]
    return "\n".join(lines)


def _decides(key: Key) -> bool:
    is_named = key.path in ("seed", "iterations", "rules")
    return (is_named or key.is_changed) and key.path.partition(".")[0] not in _NOT_TRAINING
