"""The command that makes a player's weights a model in a folder of its own, or a page that anybody
can open (`export`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from train.cli import options
from train.cli.options import Positional, arg
from train.runtime.errors import UsageError, usage_errors
from train.runtime.files import read_json, writing
from wallgo_jax.game.rules import PRESETS

if TYPE_CHECKING:
    from train.checkpoints.weights import TrainedNetwork

_OF_A_MATCH = ("first", "second", "wins", "draws", "losses", "win_rate", "interval_95")


@dataclasses.dataclass(frozen=True)
class Export:
    """Write a player's weights into a folder that is a player itself, with a card that says how
    they were made and how strong they are."""

    EXAMPLES = (
        "export runs/quickstart out/quickstart",
        "export runs/cpu models/mine --matches out/wjx.json out/shipped.json",
        "export runs/quickstart --web out/page",
    )

    player: Annotated[Positional[str], arg("RUN|PLAYER")]
    """Run, one of its checkpoints, or another trained player, named as in docs/players.md."""
    out: Annotated[Positional[Path | None], arg("[FOLDER]", "")] = None
    """Folder to write: a new or empty one, or a model that is replaced; its name is the model's."""
    web: Annotated[Path | None, arg("FOLDER", "")] = None
    """Folder for a page that plays in any browser, without Python: any static host serves it. Rules
    that the player has not learned are played by the models that come with the package."""
    matches: Annotated[tuple[Path, ...], arg("FILE ...", "")] = ()
    """Matches of these weights for the card, as `match --json` wrote them."""

    def run(self) -> int:
        """Returns the exit code."""
        if self.out is None and self.web is None:
            raise UsageError("export: name a folder, or one for a page after --web")
        if self.out is not None:
            trained = export(self.player, self.out, self.matches)
            options.say_written(self.out, f"weights and card of {trained.source}")
        if self.web is not None:
            trained = export_page(self.player, self.web)
            options.say_written(self.web, f"page that plays by {trained.source}")
        return 0


def export(player: str, out: Path, matches: Sequence[Path] = ()) -> TrainedNetwork:
    """Write the weights of a trained player, with what is known of how they were made and how
    strong they are, and return them.

    Raises:
      UsageError: there are no such weights, the folder holds something else or cannot be written,
        or a match is none of these weights.
    """
    from train.checkpoints import pretrained
    from train.checkpoints.exported import write_model
    from train.players.networks import load_network

    trained = load_network(player)
    about = _about(trained)
    played = [_read_match(path, trained) for path in matches]
    if played:
        known = about.get("matches") or []
        about |= {"matches": [*known, *(match for match in played if match not in known)]}
    with writing(out):
        name = pretrained.name_of(out)
        write_model(out, trained.variables, trained.config, about, player=name)
    return trained


def export_page(player: str, folder: Path) -> TrainedNetwork:
    """Write a page that plays by a trained player's weights, and return them.

    Raises:
      UsageError: there are no such weights, the page's engine does not know them, or the folder
        holds something else or cannot be written.
    """
    from train.checkpoints import pretrained
    from train.players.networks import load_network
    from train.review.puzzle_file import shipped_puzzles
    from train.ui.web import write_page

    trained = load_network(player)
    learned = set(trained.config.learned)
    models = [pretrained.model_for(rules) for rules in PRESETS.values() if rules not in learned]
    others = [load_network(f"pretrained:{model}") for model in dict.fromkeys(models) if model]
    with writing(folder):
        write_page(folder, [trained, *others], trained.config.learned[0], shipped_puzzles())
    return trained


def _about(trained: TrainedNetwork) -> dict[str, Any]:
    """Entries of the card, with the run's time to strength where `bench` has measured it."""
    from train.experiments.strength import CURVE_FILE
    from train.loop.history import provenance

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

    match = read_json(path)
    missing = [key for key in _OF_A_MATCH if not isinstance(match, dict) or key not in match]
    if missing:
        raise UsageError(f"{path}: no match of `match --json`: it has no {missing[0]!r}")
    with usage_errors(str(path)):
        first = load_network(match["first"])
    if first.digest != trained.digest:
        raise UsageError(
            f"{path}: its first player, {match['first']}, has other weights than {trained.source}"
        )
    return match
