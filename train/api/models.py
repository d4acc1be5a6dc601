"""Trained players as models of their own: exported with a card, and rated level by level."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from train.api.arguments import AnyPlayer, Files, Flag, Progress, WrittenFile, WrittenFolder, arg
from train.api.signatures import verb
from train.config import SHIPPED
from train.runtime.errors import UsageError, usage_errors
from train.runtime.fields import AtLeastOne, Count, Seed
from train.runtime.results import Result
from wallgo_jax.formats.option_names import argument

_OF_A_MATCH = ("first", "second", "wins", "draws", "losses", "win_rate", "interval_95")

if TYPE_CHECKING:
    from train.checkpoints.weights import TrainedNetwork
    from train.ratings.pool import Entrant
    from train.ratings.rated import RatedPool
    from wallgo_jax.game.rules import Rules


@dataclasses.dataclass(frozen=True, repr=False)
class Exported(Result):
    """Weights that were written, and where.

    Attributes:
      network: the config and the weights.
      written: folders, with what they hold.
    """

    network: TrainedNetwork
    written: Mapping[Path, str] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<weights of {self.network.source}, in {', '.join(map(str, self.written))}>"

    def shown(self) -> list[Any]:
        """What `export` prints: nothing but what is written."""
        return []

    def summary(self) -> dict[str, Any]:
        """What `export --json` writes."""
        return {"player": self.network.source, "written": [*map(str, self.written)]}


@verb
def export(
    player: Annotated[AnyPlayer, arg("RUN|PLAYER")],
    folder: Annotated[WrittenFolder | None, arg("[FOLDER]", "")] = None,
    *,
    web: WrittenFolder | None = None,
    matches: Files = (),
) -> Exported:
    """Write a player's weights into a folder that is a player itself, with a card that says how
    they were made and how strong they are.

    Args:
      player: run, one of its checkpoints, or another trained player, named as in docs/players.md.
      folder: folder to write: it must be new or empty, or hold a model, which is replaced. The
        folder's name becomes the model's name.
      web: folder for a page that plays in any browser, without Python; any static host can serve
        it. For rules that the player has not learned, the models that come with the package play.
      matches: files that `match --json` wrote about matches of these weights, for the card.

    Raises:
      UsageError: there are no such weights, a folder holds something else or cannot be written, a
        match is none of these weights, or the page's engine does not know them.

    Example:
      `train.export("runs/quickstart", "out/quickstart")`
    """
    from train.api.players import network_of

    if folder is None and web is None:
        raise UsageError(f"export: name a folder, or one for a page after {argument('web')}")
    trained = network_of(player)
    written = dict[Path, str]()
    if folder is not None:
        _write_model(trained, Path(folder), [Path(file) for file in matches])
        written[Path(folder)] = f"weights and card of {trained.source}"
    if web is not None:
        _write_page(trained, Path(web))
        written[Path(web)] = f"page that plays by {trained.source}"
    return Exported(trained, written)


def _write_model(trained: TrainedNetwork, folder: Path, matches: Sequence[Path]) -> None:
    """Write the weights with what is known of how they were made and how strong they are."""
    from train.checkpoints import pretrained
    from train.checkpoints.exported import write_model
    from train.runtime.files import writing

    about = _about(trained)
    played = [_read_match(path, trained) for path in matches]
    if played:
        known = about.get("matches") or []
        about |= {"matches": [*known, *(match for match in played if match not in known)]}
    with writing(folder):
        name = pretrained.name_of(folder)
        write_model(folder, trained.variables, trained.config, about, player=name)


def _write_page(trained: TrainedNetwork, folder: Path) -> None:
    """Write a page that plays by the weights, and by shipped models where they have not learned."""
    from train.checkpoints import pretrained
    from train.players.networks import load_network
    from train.review.puzzle_file import shipped_puzzles
    from train.runtime.files import writing
    from train.ui.web import write_page
    from wallgo_jax.game.rules import PRESETS

    learned = set(trained.config.learned)
    models = [pretrained.model_for(rules) for rules in PRESETS.values() if rules not in learned]
    others = [load_network(f"pretrained:{model}") for model in dict.fromkeys(models) if model]
    with writing(folder):
        write_page(folder, [trained, *others], trained.config.learned[0], shipped_puzzles())


def _about(trained: TrainedNetwork) -> dict[str, Any]:
    """Entries of the card, with the run's time to strength where `bench` has measured it."""
    from train.loop.history import provenance
    from train.loop.run_directory import CURVE_FILE
    from train.runtime.files import read_json

    about = provenance(trained)
    path = None if trained.run is None else trained.run / CURVE_FILE
    if path is not None and path.exists():
        curve = read_json(path)
        # A checkpoint's card tells nothing of weights that came after it.
        if all(point["iteration"] <= about["iteration"] for point in curve["points"]):
            about = about | {"strength": curve}
    return about


def _read_match(path: Path, trained: TrainedNetwork) -> dict[str, Any]:
    """A match that the weights have played as its first player.

    Raises:
      UsageError: the file holds none, or its first player has other weights.
    """
    from train.players.networks import load_network
    from train.runtime.files import read_json

    match = read_json(path)
    missing = [key for key in _OF_A_MATCH if not isinstance(match, dict) or key not in match]
    if missing:
        raise UsageError(
            f"{path}: no match of `python -m train match --json`: it has no {missing[0]!r}"
        )
    with usage_errors(str(path)):
        first = load_network(match["first"])
    if first.digest != trained.digest:
        raise UsageError(
            f"{path}: its first player, {match['first']}, has other weights than {trained.source}"
        )
    return match


@verb
def levels(
    player: Annotated[str, arg("[PLAYER]", f"(default: {SHIPPED})")] = SHIPPED,
    *,
    games: AtLeastOne = 40,
    budget: AtLeastOne = 3200,
    opening_plies: Count = 2,
    seed: Seed = 0,
    cache: Annotated[WrittenFile, arg("FILE", "(default: out/levels-games.jsonl)")] = Path(
        "out/levels-games.jsonl"
    ),
    card: Flag = False,
    progress: Progress = False,
) -> RatedPool:
    """Rate the levels of `play` in one pool with `wjx`, whose Elo is 0, with 95 % intervals. Games
    are kept: a larger budget adds only new ones.

    Args:
      player: a network, as docs/players.md names it, without simulations.
      games: games each time that a pairing is chosen; half of them with each colour.
      budget: total number of games, including kept ones.
      opening_plies: random plies with which both games of a pair start.
      seed: random seed.
      cache: file that keeps the games.
      card: write the Elo of each level into the card of the exported folder or model, where the
        page of `play` reads it.
      progress: show a bar.

    Raises:
      UsageError: the player is no network of two players, or a number is not allowed.

    Example:
      `train.levels("models/mine", budget=4000).table()`
    """
    from train.api.ratings import elo
    from train.checkpoints.exported import CARD_FILE, add_to_card
    from train.review.player import card_folder
    from train.ui.machine import CARD_KEY, CARD_KEY_HOW, LEVELS, ZERO

    entrants, rules = _entrants(player)
    folder = card_folder(player) if card else None
    rated = elo(
        entrants,
        rules=rules,
        zero=ZERO,
        cache=cache,
        games=games,
        budget=budget,
        opening_plies=opening_plies,
        seed=seed,
        progress=progress,
    )
    if folder is not None and not rated.is_interrupted:
        figures = ("elo", "low", "high")
        rows = {row["player"]: {key: round(row[key]) for key in figures} for row in rated.rows}
        how: dict[str, Any] = {"games": games, "budget": budget, "opening_plies": opening_plies}
        measured = {name: rows[name] for name in LEVELS}
        add_to_card(folder, {CARD_KEY: measured, CARD_KEY_HOW: how | {"seed": seed, "zero": ZERO}})
        rated = dataclasses.replace(rated, written={folder / CARD_FILE: "Elo of the levels"})
    return dataclasses.replace(rated, heading=f"Levels of {player}")


def _entrants(player: str) -> tuple[list[Entrant], Rules]:
    """The player at zero and the levels, weakest first, and the rules."""
    from train.api.players import make_player, rules_for
    from train.config import written_values
    from train.players import registry
    from train.players.names import check_without_budget, read_network_name
    from train.players.networks import network_config
    from train.ratings import pool
    from train.runtime.errors import check_two_players
    from train.ui.machine import LEVELS, ZERO

    read = read_network_name(player)
    check_without_budget(read, searches=True)
    rules = rules_for([read.full])
    check_two_players(rules, "levels")
    config = network_config(read)
    zero = make_player(ZERO, rules)
    played_by = {key: written_values(getattr(config, key)) for key in ("network", "search")}
    entrants = [pool.Entrant(zero.name, zero.identity, zero.registered)]
    for level in LEVELS.values():
        name = read.with_simulations(level.simulations).full
        made = registry.make_player(name, rules, temperature=level.temperature)
        known_by = pool.identity(name, made, played_by | level._asdict())
        entrants.append(pool.Entrant(level.name, known_by, made))
    return entrants, rules
