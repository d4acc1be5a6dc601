"""The commands about positions whose value is known: `accuracy` of players there, and `late`, which
proves late positions of games."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from train.cli.common import options
from train.cli.common.unused import refuse_unused
from train.config import SHIPPED, read_config
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts

if TYPE_CHECKING:
    from train.players.basic import Player
    from wallgo_jax.game.rules import Rules

MIN_WALLS = 4
SOLVED_RULES = '{"size": 3, "stones": 1, "order": [0, 1]}'


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """Measure how often a player keeps the value of the game: over all positions of a solved
    board, over sampled ones of a larger board, or over proven late positions of games."""

    EXAMPLES = (
        "accuracy search:runs/tiny@64",
        "accuracy search:runs/tiny_4x4@64 --positions 5000",
        "accuracy --late out/late.jsonl",
        "accuracy runs/quickstart/checkpoints/* --late out/late.jsonl",
    )

    players: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        tyro.conf.arg(metavar="[PLAYER ...]", help_behavior_hint=f"(default: {SHIPPED})"),
    ] = (SHIPPED,)
    """Players to measure, named as in docs/players.md; more than one with --late alone, which the
    default needs, too: its board is not solved."""
    rules: Annotated[
        str,
        tyro.conf.arg(
            metavar="RULES", help_behavior_hint=f"(default: the player's own, else {SOLVED_RULES})"
        ),
    ] = ""
    """Rules of a board that can be solved: JSON object, or file (JSON or TOML)."""
    positions: int = 0
    """Positions of random games to sample, each solved by alpha-beta (one stone each, at most 4x4
    cells); 0 for all positions of a board that is solved as a whole (3x3)."""
    min_walls: int = MIN_WALLS
    """Fewest walls of a sampled position; fewer take alpha-beta longer."""
    late: options.OptionalFile = None
    """File of late positions that `late` has proven, to measure there instead."""
    batch: int = 512
    """Positions evaluated in parallel."""
    seed: int = 0
    """Random seed."""
    config: options.OptionalFile = None
    """TOML file of a run, whose [heuristics] are the weights of ethen and wjx."""
    json: options.OptionalFile = None
    """File to write the figures to, as JSON."""

    def run(self) -> int:
        """Returns the exit code."""
        from rich.console import Console

        from train.analysis import value_accuracy

        options.check_seed("accuracy", self.seed)
        if self.batch < 1:
            raise UsageError(f"accuracy: batch ({self.batch}) must be at least 1")
        if not self.players:
            raise UsageError("accuracy: name a player, see docs/players.md")
        options.check_files(self.json, inputs=(self.rules, self.late, self.config))
        if self.min_walls != MIN_WALLS and not self.positions:
            raise UsageError("accuracy: --min-walls is for --positions")
        if self.late is not None:
            return self._measure_late(self.late)
        if len(self.players) > 1:
            raise UsageError("accuracy: more than one player needs --late")
        player = next(iter(self.players))
        rules = options.read_rules_for(self.rules, [player], default=SOLVED_RULES)
        if self.positions:
            return self._measure_sample(player, rules)
        made = self._make_player(player, rules)
        found = value_accuracy.value_accuracy(made, rules, batch=self.batch, seed=self.seed)
        Console().print(value_accuracy.accuracy_table(found))
        if self.json is not None:
            options.write_json(self.json, value_accuracy.accuracy_record(found))
        return 0

    def _make_player(self, name: str, rules: Rules) -> Player:
        from train.players import registry

        return registry.make_player(name, rules, heuristics=read_config(self.config).heuristics)

    def _measure_sample(self, player: str, rules: Rules) -> int:
        from train.analysis import sampled_accuracy
        from train.runtime.display import Display

        sample = sampled_accuracy.Sample(self.positions, self.min_walls, self.seed)
        made = self._make_player(player, rules)
        display = Display()
        with (
            display,
            display.task(player, self.positions, "positions") as task,
            interrupts("the positions solved so far count", show=display.note) as is_interrupted,
        ):

            def on_progress(done: int) -> None:
                is_interrupted.keeps_work()
                task(done)

            found = sampled_accuracy.sampled_accuracy(
                made,
                rules,
                sample,
                batch=self.batch,
                on_progress=on_progress,
                should_stop=is_interrupted,
            )
        display.console.print(sampled_accuracy.sampled_table(found))
        if self.json is not None:
            options.write_json(self.json, sampled_accuracy.sampled_record(found))
        return EXIT_INTERRUPTED if is_interrupted() else 0

    def _measure_late(self, path: Path) -> int:
        from rich.console import Console

        from train.analysis import late_accuracy

        if self.rules:
            raise UsageError("accuracy: --late has rules of its own, leave out --rules")
        if self.positions:
            raise UsageError("accuracy: --late has positions of its own, leave out --positions")
        late, found = late_accuracy.load_late(path), []
        for player in self.players:
            made = self._make_player(player, late.rules)
            found.append(late_accuracy.late_accuracy(made, late, batch=self.batch, seed=self.seed))
            Console().print(late_accuracy.late_table(found[-1]))
            if self.json is not None:
                records = [late_accuracy.late_record(each) for each in found]
                options.write_json(self.json, records if len(self.players) > 1 else records[0])
        if len(found) > 1:
            Console().print(late_accuracy.players_table(found))
        return 0


@dataclasses.dataclass(frozen=True)
class Late:
    """Prove late positions of recorded games: their value, and all plays that keep it."""

    EXAMPLES = ("late out/games.jsonl.gz --out out/late.jsonl",)

    games: Annotated[
        tyro.conf.Positional[tuple[Path, ...]],
        tyro.conf.arg(metavar="FILE ...", help_behavior_hint="(required)"),
    ]
    """Record files, such as `match --records` writes."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE", help_behavior_hint="(required)")]
    """File that each game is added to once its positions are proven; games that it has are
    skipped."""
    positions: int = 2000
    """Proven positions to stop at."""
    per_game: int = 4
    """Positions tried in each game."""
    max_plies_left: int = 12
    """Most plies before the end of its game that a position is taken from."""
    node_limit: int = 50_000
    """Positions that one proof may look at."""
    seed: int = 0
    """Random seed."""
    sample: options.OptionalFile = None
    """File for a share of the proven positions, spread over plies left, with those first in which
    a play can err; may end in .gz."""
    sample_positions: int = 1000
    """Positions of that share."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.analysis import late_positions, late_proofs
        from train.runtime.display import Display

        if not self.games:
            raise UsageError("late: names no file")
        if self.sample is None:
            refuse_unused(self, "sample_positions", where="without --sample")
        options.check_seed("late", self.seed)
        for name in ("positions", "per_game", "max_plies_left", "node_limit", "sample_positions"):
            if getattr(self, name) < 1:
                raise UsageError(f"late: {name} ({getattr(self, name)}) must be at least 1")
        recorded = late_proofs.read_games(self.games)
        options.check_files(self.out, self.sample)
        # Games may be those of --out itself, which grows and loses nothing.
        options.check_files(self.sample, inputs=self.games)
        how = late_proofs.ProofOptions(
            self.positions, self.per_game, self.max_plies_left, self.node_limit, self.seed
        )
        display = Display()
        with (
            display,
            display.task("proving late positions", self.positions, "positions") as task,
            interrupts("the games that are proven are kept", show=display.note) as is_interrupted,
        ):

            def on_progress(proven: int) -> None:
                is_interrupted.keeps_work()
                task(proven)

            found = late_proofs.prove_games(
                recorded, self.out, how, on_progress=on_progress, should_stop=is_interrupted
            )
        display.console.print(late_proofs.proofs_table(found))
        if self.sample is not None:
            chosen = late_positions.spread(
                found,
                self.sample_positions,
                seed=self.seed,
                preferred=late_proofs.telling_positions(found),
            )
            late_positions.write_late(self.sample, chosen)
            options.say_written(
                self.sample, f"{sum(len(game.proven) for game in chosen)} positions"
            )
        return EXIT_INTERRUPTED if is_interrupted() else 0
