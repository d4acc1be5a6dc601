"""The commands that measure: what changes of a config are worth (`experiment ablation`), and the
machine's levels (`experiment levels`).
"""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from train.cli import options
from train.cli.options import WRITTEN, Positional, RandomSeed, arg
from train.cli.review import Calibrate
from train.config import SHIPPED, written_values
from train.runtime.fields import Real, Whole
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts
from train.runtime.showing import tell
from wallgo_jax.cli.parsing import Flag, Program

if TYPE_CHECKING:
    from train.ratings.pool import Entrant
    from wallgo_jax.game.rules import Rules


ABLATION = "ablation"
_OUT = Path("out/study")


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Measure what changes of a config are worth, the machine's levels, or win chances.
    `EXPERIMENTS` reads the words after it."""

    EXAMPLES = ("experiment ablation configs/ablations/recipe.toml --out out/recipe --screening",)

    what: Positional[str]
    """ablation, levels or calibrate."""


@dataclasses.dataclass(frozen=True)
class Ablation:
    """Train every change of a list, and the base that they change, for the same wall time, match
    them seed by seed, and write a page. The same command goes on where it was interrupted."""

    EXAMPLES = (
        "ablation configs/ablations/recipe.toml --out out/recipe --screening",
        "ablation configs/ablations/recipe.toml --out out/recipe --only width-64",
    )

    changes: Annotated[Positional[Path], arg("LIST")]
    """TOML file with the base and its changes (docs/training.md, Ablations)."""
    out: Annotated[Path, arg("FOLDER")]
    """Directory of the trainings, the finished pieces and the pages."""
    only: Annotated[tuple[str, ...], arg("NAME ...", "")] = ()
    """Changes to compare; without it, all of the list."""
    screening: Flag = False
    """One seed and five minutes, to see what is worth six."""
    minutes: Annotated[Real | None, arg("FLOAT", "(default: 10)")] = None
    """Minutes of each training, compiling apart; turned into iterations once for each change."""
    seeds: Annotated[Whole | None, arg("INT", "(default: 6)")] = None
    """Number of paired seeds; fewer than six are called screening."""
    first_seed: Whole = 0
    """The first of the seeds; the others follow it."""
    games: Whole = 200
    """Games of each seed's match, shared among the opening plies."""
    simulations: Whole = 64
    """Simulations a move in the matches."""
    opening_plies: tuple[Whole, ...] = (2, 6)
    """Numbers of random plies that the games of a match start with."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.experiments import ablation, lab
        from train.runtime.display import Display

        minutes, seeds = (5.0, 1) if self.screening else (10.0, 6)
        names = ("games", "simulations", "opening_plies", "first_seed")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        fields["minutes"] = minutes if self.minutes is None else self.minutes
        fields["seeds"] = seeds if self.seeds is None else self.seeds
        how = ablation.validated(ablation.AblationOptions, fields, where=ABLATION)
        changes = ablation.read_changes(self.changes, self.only)
        words = [ABLATION, str(self.changes), *options.changed_options(self, "changes")]
        command = f"python -m train experiment {shlex.join(words)}"
        work = lab.Lab(self.changes.stem, lab.Options(self.out), command)
        display = Display()
        try:
            with interrupts("what is finished is kept"):
                table = ablation.Ablation(changes, how, work, display.say).run()
        except KeyboardInterrupt:
            tell(f"stopped; to go on: {command}")
            return EXIT_INTERRUPTED
        display.console.print(table.shown())
        print(f"written: {self.out / self.changes.stem}")
        return 0


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
    games: Whole = 40
    """Games each time that a pairing is chosen, half of them with each colour."""
    budget: Whole = 3200
    """Games in all, kept ones included."""
    opening_plies: Whole = 2
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
        from train.ui.machine import CARD_KEY, CARD_KEY_HOW, LEVELS, ZERO

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
        from train.players.names import check_without_budget, read_network_name
        from train.players.networks import network_config
        from train.ratings import pool
        from train.runtime.errors import check_two_players
        from train.ui.machine import LEVELS, ZERO

        read = read_network_name(self.player)
        check_without_budget(read, searches=True)
        rules = rules_for([read.full])
        check_two_players(rules, "levels")
        config, zero = network_config(read), make_player(ZERO, rules)
        played_by = {key: written_values(getattr(config, key)) for key in ("network", "search")}
        entrants = [pool.Entrant(zero.name, zero.identity, zero.registered)]
        for level in LEVELS.values():
            name = read.with_simulations(level.simulations).full
            player = registry.make_player(name, rules, temperature=level.temperature)
            known_by = pool.identity(name, player, played_by | level._asdict())
            entrants.append(pool.Entrant(level.name, known_by, player))
        return entrants, rules


EXPERIMENTS = Program(
    name="python -m train experiment",
    description="Measure what changes of a config are worth, levels, or win chances.",
    groups={"WHAT": {ABLATION: Ablation, "levels": Levels, "calibrate": Calibrate}},
)
