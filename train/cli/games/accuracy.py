"""The command about positions whose value is known: it measures players there, and proves late
positions of games (`accuracy`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from train.cli.common import options
from train.cli.common.unused import refuse_unused
from train.config import SHIPPED, read_config
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts

if TYPE_CHECKING:
    from train.analysis.accuracy import Accuracy as Measured
    from train.players.basic import Player
    from wallgo_jax.game.rules import Rules

MIN_WALLS = 4
PROVEN = 2000
SOLVED_RULES = '{"size": 3, "stones": 1, "order": [0, 1]}'
_OF_PROOFS = ("per_game", "max_plies_left", "node_limit", "sample", "sample_positions")


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """Measure how often a player keeps the value of the game: over all positions of a solved
    board, over sampled ones of a larger board, or over proven late positions of games. With
    --prove, prove late positions: their value, and all plays that keep it."""

    EXAMPLES = (
        "accuracy search:runs/tiny@64",
        "accuracy search:runs/tiny_4x4@64 --positions 5000",
        "accuracy --late out/late.jsonl",
        "accuracy runs/quickstart/checkpoints/* --late out/late.jsonl",
        "accuracy --prove out/games.jsonl.gz --late out/late.jsonl",
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
    positions: Annotated[int, tyro.conf.arg(help_behavior_hint="")] = 0
    """Positions of random games to sample, each solved by alpha-beta (one stone each, at most 4x4
    cells), in place of all positions of a board that is solved as a whole (3x3); with --prove,
    proven positions to stop at (2,000)."""
    min_walls: int = MIN_WALLS
    """Fewest walls of a sampled position; fewer take alpha-beta longer."""
    late: options.OptionalFile = None
    """File of proven late positions, to measure there instead; with --prove, the file that each
    game is added to once its positions are proven, where games that it has are skipped."""
    prove: Annotated[
        tuple[Path, ...], tyro.conf.arg(metavar="FILE ...", help_behavior_hint="")
    ] = ()
    """Record files, such as `match --records` writes: prove late positions of their games, and
    measure nobody."""
    per_game: int = 4
    """Positions tried in each game that is proven."""
    max_plies_left: int = 12
    """Most plies before the end of its game that a position to prove is taken from."""
    node_limit: int = 50_000
    """Positions that one proof may look at."""
    sample: options.OptionalFile = None
    """File for a share of the proven positions, spread over plies left, with those first in which
    a play can err; may end in .gz."""
    sample_positions: int = 1000
    """Positions of that share."""
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
        options.check_seed("accuracy", self.seed)
        for name in ("batch", "per_game", "max_plies_left", "node_limit", "sample_positions"):
            if getattr(self, name) < 1:
                raise UsageError(f"accuracy: {name} ({getattr(self, name)}) must be at least 1")
        if self.prove:
            unused = ("players", "rules", "min_walls", "batch", "config", "json")
            refuse_unused(self, *unused, where="with --prove")
            return self._prove()
        refuse_unused(self, *_OF_PROOFS, where="without --prove")
        if not self.players:
            raise UsageError("accuracy: name a player, see docs/players.md")
        options.check_files(self.json, inputs=(self.rules, self.late, self.config))
        if self.late is not None:
            refuse_unused(self, "rules", "positions", "min_walls", where="with --late")
            return self._measure_late(self.late)
        if len(self.players) > 1:
            raise UsageError("accuracy: more than one player needs --late")
        player = next(iter(self.players))
        rules = options.read_rules_for(self.rules, [player], default=SOLVED_RULES)
        if self.positions:
            return self._measure_sample(player, rules)
        refuse_unused(self, "min_walls", where="without --positions")
        from train.analysis.accuracy import value_accuracy

        made = self._make_player(player, rules)
        self._show([value_accuracy(made, rules, batch=self.batch, seed=self.seed)])
        return 0

    def _make_player(self, name: str, rules: Rules) -> Player:
        from train.players import registry

        return registry.make_player(name, rules, heuristics=read_config(self.config).heuristics)

    def _show(self, results: Sequence[Measured]) -> None:
        """Print the last player's table, and write the figures of all."""
        from train.runtime.display import Display

        Display().console.print(results[-1].table())
        if self.json is not None:
            records = [result.record() for result in results]
            options.write_json(self.json, records if len(self.players) > 1 else records[0])

    def _measure_sample(self, player: str, rules: Rules) -> int:
        from train.analysis.accuracy import Sample, sampled_accuracy
        from train.runtime.display import Display

        sample = Sample(self.positions, self.min_walls, self.seed)
        made, display = self._make_player(player, rules), Display()
        with (
            display,
            display.task(player, self.positions, "positions") as task,
            interrupts("the positions solved so far count", show=display.note) as is_interrupted,
        ):

            def on_progress(done: int) -> None:
                is_interrupted.keeps_work()
                task(done)

            result = sampled_accuracy(
                made,
                rules,
                sample,
                batch=self.batch,
                on_progress=on_progress,
                should_stop=is_interrupted,
            )
        self._show([result])
        return EXIT_INTERRUPTED if is_interrupted() else 0

    def _measure_late(self, path: Path) -> int:
        from rich.console import Console

        from train.analysis import accuracy
        from train.analysis.late_positions import load_late

        late, results = load_late(path), []
        for player in self.players:
            made = self._make_player(player, late.rules)
            results.append(accuracy.late_accuracy(made, late, batch=self.batch, seed=self.seed))
            self._show(results)
        if len(results) > 1:
            Console().print(accuracy.players_table(results))
        return 0

    def _prove(self) -> int:
        from train.analysis import late_positions
        from train.experiments import late_proofs
        from train.runtime.display import Display

        if self.late is None:
            raise UsageError("accuracy: --prove needs --late, the file that games are added to")
        positions = self.positions or PROVEN
        if positions < 1:
            raise UsageError(f"accuracy: positions ({positions}) must be at least 1")
        if self.sample is None:
            refuse_unused(self, "sample_positions", where="without --sample")
        recorded = late_proofs.read_games(self.prove)
        options.check_files(self.late, self.sample)
        # Games may be those of --late itself, which grows and loses nothing.
        options.check_files(self.sample, inputs=self.prove)
        how = late_proofs.ProofOptions(
            positions, self.per_game, self.max_plies_left, self.node_limit, self.seed
        )
        display = Display()
        with (
            display,
            display.task("proving late positions", positions, "positions") as task,
            interrupts("the games that are proven are kept", show=display.note) as is_interrupted,
        ):

            def on_progress(proven: int) -> None:
                is_interrupted.keeps_work()
                task(proven)

            games = late_proofs.prove_games(
                recorded, self.late, how, on_progress=on_progress, should_stop=is_interrupted
            )
        display.console.print(late_proofs.proofs_table(games))
        if self.sample is not None:
            chosen = late_positions.spread(
                games,
                self.sample_positions,
                seed=self.seed,
                preferred=late_proofs.telling_positions(games),
            )
            late_positions.write_late(self.sample, chosen)
            proven = sum(len(game.proven) for game in chosen)
            options.say_written(self.sample, f"{proven} positions")
        return EXIT_INTERRUPTED if is_interrupted() else 0
