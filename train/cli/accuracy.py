"""The command about positions whose value is known: it measures players there, and proves late
positions of games (`accuracy`)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

from train.api.arguments import SOLVED_RULES, AccuracyArguments
from train.cli import options
from train.cli.options import (
    READ,
    AtLeastOne,
    Count,
    File,
    Positional,
    Shared,
    WeightsFile,
    Written,
    arg,
)
from train.config import SHIPPED
from train.runtime.errors import UsageError

PROVEN = 2000
_PROVING = options.only("prove")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Accuracy(Shared, AccuracyArguments):
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
        Positional[tuple[str, ...]],
        arg("[PLAYER ...]", f"(default: {SHIPPED})"),
        options.without("prove"),
    ] = (SHIPPED,)
    """Players to measure, named as in docs/players.md; more than one with --late alone, which the
    default needs, too: its board is not solved."""
    rules: Annotated[
        str,
        arg("RULES", f"(default: the player's own, else {SOLVED_RULES})"),
        READ,
        options.without("prove", "late"),
    ] = ""
    """Rules of a board that can be solved: JSON object, or file (JSON or TOML)."""
    positions: Annotated[Count, arg(hint="")] = 0
    """Positions of random games to sample, each solved by alpha-beta (one stone each, at most 4x4
    cells), in place of all positions of a board that is solved as a whole (3x3); with --prove,
    proven positions to stop at (2,000)."""
    min_walls: Annotated[Count, options.only("positions"), options.without("prove", "late")] = 4
    late: File = None
    """File of proven late positions, to measure there instead; with --prove, the file that each
    game is added to once its positions are proven, where games that it has are skipped."""
    prove: Annotated[tuple[Path, ...], arg("FILE ...", ""), options.only("late")] = ()
    """Record files, such as `match --records` writes: prove late positions of their games, and
    measure nobody."""
    per_game: Annotated[AtLeastOne, _PROVING] = 4
    """Positions tried in each game that is proven."""
    max_plies_left: Annotated[AtLeastOne, _PROVING] = 12
    """Most plies before the end of its game that a position to prove is taken from."""
    node_limit: Annotated[AtLeastOne, _PROVING] = 50_000
    """Positions that one proof may look at."""
    sample: Annotated[Written, options.only("prove")] = None
    """File for a share of the proven positions, spread over plies left, with those first in which
    a play can err; may end in .gz."""
    sample_positions: Annotated[AtLeastOne, options.only("sample")] = 1000
    """Positions of that share."""
    batch: Annotated[AtLeastOne, options.without("prove")] = 512
    config: Annotated[WeightsFile, options.without("prove")] = None
    json: Annotated[options.Json, options.without("prove")] = None

    def run(self) -> int:
        """Returns the exit code."""
        if self.prove:
            return self._prove()
        if len(self.players) > 1 and self.late is None:
            raise UsageError("accuracy: more than one player needs --late")
        options.check_files(self.json, inputs=[self.late])
        return self._measure()

    def _measure(self) -> int:
        """Measure one player after another, and write the figures of those that are measured."""
        from train.analysis.accuracy import players_table
        from train.analysis.late_positions import load_late
        from train.api.measures import accuracy
        from train.runtime.display import Display

        given: dict[str, Any] = self.arguments(AccuracyArguments)
        if self.late is not None:
            given["late"] = load_late(self.late)
        results, code = [], 0
        for name in self.players:
            result = accuracy(name, **given, progress=Display())
            one = self.json if len(self.players) == 1 else None
            code = options.finish(result, one)
            results.append(result)
            if one is None:
                options.write_json(self.json, [result.summary() for result in results])
        if len(results) > 1:
            Display().console.print(players_table(results))
        return code

    def _prove(self) -> int:
        from train.analysis import late_positions, late_proofs
        from train.api.progress import follow
        from train.runtime.display import Display

        assert self.late is not None
        positions = self.positions or PROVEN
        recorded = late_proofs.read_games(self.prove)
        options.check_files(self.late, self.sample)
        # Games may be those of --late itself, which grows and loses nothing.
        options.check_files(self.sample, inputs=self.prove)
        how = late_proofs.ProofOptions(
            positions, self.per_game, self.max_plies_left, self.node_limit, self.seed
        )
        title, kept = "proving late positions", "the games that are proven are kept"
        with follow(Display(), title, positions, "positions", answer=kept) as work:

            def on_progress(proven: int) -> None:
                work.should_stop.keeps_work()
                work.task(proven)

            games = late_proofs.prove_games(
                recorded, self.late, how, on_progress=on_progress, should_stop=work.should_stop
            )
        work.display.console.print(late_proofs.proofs_table(games))
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
        goes_on = f"{kept} in {self.late}; the same command goes on"
        return options.exit_code(work.should_stop(), goes_on)
