"""The command that rates the machine's levels (`levels`)."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from train.cli.common import options
from train.config import SHIPPED, read_config
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED
from wallgo_jax.cli.parsing import Flag
from wallgo_jax.game.rules import name_of

if TYPE_CHECKING:
    from train.ratings.pool import Entrant
    from wallgo_jax.game.rules import Rules


@dataclasses.dataclass(frozen=True)
class Levels:
    """Rate the levels of `play` in one pool with `wjx`, whose Elo is 0, with 95 % intervals. Games
    are kept, and a larger budget adds only new ones."""

    EXAMPLES = (
        "levels pretrained:wallzero-4stone --card",
        "levels models/mine --budget 4000 --json out/levels.json",
    )

    player: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(metavar="[PLAYER]", help_behavior_hint=f"(default: {SHIPPED})"),
    ] = SHIPPED
    """A network, as docs/players.md names it, without simulations."""
    games: int = 40
    """Games each time that a pairing is chosen, half of them with each colour."""
    budget: int = 3200
    """Games in all, kept ones included."""
    opening_plies: int = 2
    """Random plies that both games of a pair start with."""
    seed: int = 0
    """Random seed."""
    cache: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("out/levels-games.jsonl")
    """File that keeps the games."""
    card: Flag = False
    """Write the Elo of each level into the card of the exported folder or of the model, where the
    page of `play` reads it."""
    json: options.OptionalFile = None
    """File to write the figures to, as JSON."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.games import rate_pool
        from train.cli.games.watching import watch_pool
        from train.runtime.display import Display
        from train.ui.games.levels import ZERO

        entrants, rules, folder = self._entrants()
        options.check_files(self.cache, self.json)
        display = Display()
        try:
            rated = rate_pool(
                entrants,
                rules,
                games=self.games,
                budget=self.budget,
                zero=ZERO,
                opening_plies=self.opening_plies,
                seed=self.seed,
                cache=self.cache,
                progress=watch_pool(display),
            )
        except UsageError as error:
            # What rates the pool calls itself elo.
            raise UsageError(re.sub("^elo: ", "levels: ", str(error))) from None
        caption = (
            f"{rated.zero} · {rated.measured.games} games, {rated.measured.new} of them new · "
            f"seed {self.seed} · {self.opening_plies} random opening plies"
        )
        title = f"Levels of {self.player} on {name_of(rules)}"
        display.console.print(rated.table(title=title, caption=caption))
        if self.json is not None:
            options.write_json(self.json, rated.summary())
        if rated.measured.is_interrupted:
            return EXIT_INTERRUPTED
        if folder is not None:
            self._write_card(folder, rated.rows)
        return 0

    def _entrants(self) -> tuple[list[Entrant], Rules, Path | None]:
        """The player at zero and the levels, weakest first, the rules, and the card's folder."""
        from train.players import registry
        from train.players.names import read_network_name
        from train.ratings import pool
        from train.review.player import card_folder
        from train.ui.games.levels import LEVELS, ZERO

        read = read_network_name(self.player)
        if read.has_budget or read.kind == "net":
            raise UsageError(f"levels: player {self.player!r}: name a network without simulations")
        folder = card_folder(self.player) if self.card else None
        rules = options.read_rules_for("", [read.full])
        if rules.players != 2:
            raise UsageError("levels: Elo is measured in games of two players")
        config, levels = registry.network_config(read), []
        played_by = {key: dataclasses.asdict(getattr(config, key)) for key in ("network", "search")}
        for level in LEVELS.values():
            name = read.with_simulations(level.simulations).full
            player = registry.make_player(name, rules, temperature=level.temperature)
            known_by = pool.identity(name, player, played_by | level._asdict())
            levels.append(pool.Entrant(level.name, known_by, player))
        heuristics = read_config(None).heuristics
        anchors = pool.entrants_of_names(
            (ZERO,), rules, heuristics=heuristics, make_player=registry.make_player
        )
        return anchors + levels, rules, folder

    def _write_card(self, folder: Path, rows: list[dict[str, Any]]) -> None:
        """Write the Elo of each level, with what it was measured by."""
        from train.checkpoints.exported import add_to_card
        from train.ui.games.levels import CARD_KEY, CARD_KEY_HOW, LEVELS, ZERO

        figures = ("elo", "low", "high")
        by_name = {row["player"]: {key: round(row[key]) for key in figures} for row in rows}
        elo = {name: by_name[name] for name in LEVELS}
        how = {key: getattr(self, key) for key in ("games", "budget", "opening_plies", "seed")}
        add_to_card(folder, {CARD_KEY: elo, CARD_KEY_HOW: how | {"zero": ZERO}})
        options.say_written(folder / "card.json", "Elo of the levels")
