"""The command that rates the machine's levels (`experiment levels`)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from train.cli import options
from train.cli.options import WRITTEN, RandomSeed, arg
from train.config import SHIPPED
from train.runtime.errors import UsageError
from wallgo_jax.cli.parsing import Flag

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

    player: options.ShippedPlayer = SHIPPED
    """A network, as docs/players.md names it, without simulations."""
    games: int = 40
    """Games each time that a pairing is chosen, half of them with each colour."""
    budget: int = 3200
    """Games in all, kept ones included."""
    opening_plies: int = 2
    """Random plies that both games of a pair start with."""
    seed: RandomSeed = 0
    cache: Annotated[Path, arg("FILE"), WRITTEN] = Path("out/levels-games.jsonl")
    """File that keeps the games."""
    card: Flag = False
    """Write the Elo of each level into the card of the exported folder or of the model, where the
    page of `play` reads it."""
    json: options.Json = None

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.ratings import elo
        from train.checkpoints.exported import add_to_card
        from train.review.player import card_folder
        from train.runtime.display import Display
        from train.ui.games.levels import CARD_KEY, CARD_KEY_HOW, LEVELS, ZERO

        entrants, rules = self._entrants()
        folder = card_folder(self.player) if self.card else None
        how = {key: getattr(self, key) for key in ("games", "budget", "opening_plies", "seed")}
        rated = elo(entrants, rules=rules, zero=ZERO, cache=self.cache, progress=Display(), **how)
        rated = dataclasses.replace(rated, heading=f"Levels of {self.player}")
        code = options.finish(rated, self.json)
        if folder is not None and not code:
            figures = ("elo", "low", "high")
            rows = {row["player"]: {key: round(row[key]) for key in figures} for row in rated.rows}
            measured = {name: rows[name] for name in LEVELS}
            add_to_card(folder, {CARD_KEY: measured, CARD_KEY_HOW: how | {"zero": ZERO}})
            options.say_written(folder / "card.json", "Elo of the levels")
        return code

    def _entrants(self) -> tuple[list[Entrant], Rules]:
        """The player at zero and the levels, weakest first, and the rules."""
        from train.api.players import make_player, rules_for
        from train.players import registry
        from train.players.names import read_network_name
        from train.ratings import pool
        from train.ui.games.levels import LEVELS, ZERO

        read = read_network_name(self.player)
        if read.has_budget or read.kind == "net":
            raise UsageError(f"levels: player {self.player!r}: name a network without simulations")
        rules = rules_for([read.full])
        if rules.players != 2:
            raise UsageError("levels: Elo is measured in games of two players")
        config, zero = registry.network_config(read), make_player(ZERO, rules)
        played_by = {key: dataclasses.asdict(getattr(config, key)) for key in ("network", "search")}
        entrants = [pool.Entrant(zero.name, zero.identity, zero.registered)]
        for level in LEVELS.values():
            name = read.with_simulations(level.simulations).full
            player = registry.make_player(name, rules, temperature=level.temperature)
            known_by = pool.identity(name, player, played_by | level._asdict())
            entrants.append(pool.Entrant(level.name, known_by, player))
        return entrants, rules
