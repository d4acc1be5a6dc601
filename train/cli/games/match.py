"""The commands that measure one player: against another (`match`), against the one that
ships (`gate`), in positions whose value is known (`accuracy`, and `late`, which proves them)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from train.arena.config import Sprt, parse_sprt
from train.cli.common import options
from train.config import SHIPPED
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts

if TYPE_CHECKING:
    from train.arena.result import MatchResult
    from train.runtime.display import Display
    from wallgo_jax.game.rules import Rules

EXIT_NOT_PASSED = 1
SOLVED_RULES = '{"size": 3, "stones": 1, "order": [0, 1]}'
_PlayerName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PLAYER")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Match(options.MatchSettings):
    """Play a match between two players, or between three or four where the rules have so many
    seats. Players are named as in docs/players.md."""

    EXAMPLES = (
        "match runs/quickstart",
        "match search:runs/quickstart@64 wjx --games 400",
        "match search:runs/a search:runs/b --games 4000 --sprt 0,20",
        "match greedy wjx --rules wallzero-empty --records out/games.jsonl.gz",
        "match wjx greedy random --rules playwallgo-3p",
        "match heuristic-search:wjx@16 wjx --rules playwallgo-4p",
    )

    first: _PlayerName
    """Player that the result is for."""
    second: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(
            metavar="[OPPONENT]",
            help_behavior_hint="(default: the one that ships, with PLAYER's budget)",
        ),
    ] = ""
    """Player that it meets; with three or four seats and no more names, at all other seats."""
    others: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        tyro.conf.arg(metavar="[OPPONENT ...]", help_behavior_hint=""),
    ] = ()
    """Players of further seats."""
    games: int = 400
    """Games to play, half of them with each colour; with more than two seats at least so many, in
    every order of the players."""
    batch: int = 400
    """Games played in parallel."""
    records: options.OptionalFile = None
    """File to write the games to, a JSON object a line; compressed if it ends in .gz."""
    sprt: Annotated[str, tyro.conf.arg(metavar="ELO0,ELO1", help_behavior_hint="")] = ""
    """Stop once a sequential test tells which lead in Elo points is likelier, such as 0,20."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.cli.games import seats

        names = tuple(filter(None, (self.first, self.second, *self.others)))
        rules = self.rules_for(names)
        if rules.players > 2:
            return seats.run_match(self, names, rules)
        if self.others:
            raise UsageError(f"match: {len(names)} players are named, the rules are for 2")
        return EXIT_INTERRUPTED if self.play()[1] else 0

    def play(self) -> tuple[MatchResult, bool]:
        """Play and show the match; returns it, and whether a signal stopped it."""
        import jax

        from train.arena import match, sprt
        from train.runtime.display import Display

        second = self.second or _shipped_like(self.first, self.rules_for((self.first,)))
        names = self.first, second
        rules = self.rules_for(names)
        options.check_seed("match", self.seed)
        try:
            match.check_rules(rules)
            test = parse_sprt(self.sprt) if self.sprt else None
            how = match.MatchOptions(self.games, self.batch, self.opening_plies)
        except ValueError as error:
            raise UsageError(str(error)) from None
        first, second = map(self.player_maker(rules), names)
        options.check_files(self.records, self.json)
        display = Display()
        with (
            display,
            display.match(f"{first.name} against {second.name}", self.games) as task,
            interrupts("the games that are over are kept", show=display.note) as is_interrupted,
        ):

            def on_progress(games: int) -> None:
                if games > 0:
                    is_interrupted.keeps_work()
                task(games)

            result = sprt.play_until_decided(
                first,
                second,
                rules,
                dataclasses.replace(how, should_stop=is_interrupted),
                test,
                key=jax.random.key(self.seed),
                on_progress=on_progress,
            )
        self._show(result, test, display)
        return result, is_interrupted()

    def _show(self, result: MatchResult, test: Sprt | None, display: Display) -> None:
        """Print the table, and write what was asked for."""
        from train.arena import report, sprt

        caption = f"seed {self.seed} · {self.opening_plies} random opening plies"
        verdict = None if test is None else sprt.verdict_of(test, result)
        if test is not None:
            caption += f" · SPRT {self.sprt}"
        is_decided = verdict is not None and verdict.decision != sprt.UNDECIDED
        if len(result.games) < self.games and not is_decided:
            caption = f"stopped after {len(result.games)} of {self.games} games · {caption}"
        display.console.print(report.match_table([result], caption=caption))
        for line in report.forfeit_lines(result):
            display.console.print(line, highlight=False, markup=False)
        if test is not None and verdict is not None:
            display.console.print(sprt.in_words(test, verdict), highlight=False)
        if self.records is not None:
            options.write_records(self.records, result)
            options.say_written(self.records, f"{len(result.games)} games")
        if self.json is not None:
            asked = {
                "seed": self.seed,
                "opening_plies": self.opening_plies,
                "sprt": sprt.verdict_record(test, verdict) if test and verdict else None,
            }
            options.write_json(self.json, asked | report.match_record(result))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gate(options.MatchSettings):
    """Test that a player is not weaker than the one that ships, by a sequential test. The exit code
    is 0 if it is not, and 1 if it is weaker or the games do not tell."""

    EXAMPLES = (
        "gate runs/cpu@64",
        "gate runs/cpu@1s --sprt=-20,0",
        "gate 'pretrained:wallzero-4stone@64?symmetries=8' --games 2000",
    )

    player: _PlayerName
    """Player to test, named as in docs/players.md."""
    against: Annotated[
        str,
        tyro.conf.arg(
            metavar="OPPONENT",
            help_behavior_hint="(default: the one that ships, with PLAYER's budget)",
        ),
    ] = ""
    """Player that it must not be weaker than."""
    games: int = 20_000
    """Games at most, half of them with each colour."""
    batch: int = 400
    """Games played in parallel; the test looks at the result after each batch."""
    opening_plies: int = 4
    """Random plies that both games of a pair start with."""
    sprt: Annotated[str, tyro.conf.arg(metavar="ELO0,ELO1")] = "-10,0"
    """Leads in Elo points of a player that is weaker, and of one that is not."""
    records: options.OptionalFile = None
    """File to write the games to, a JSON object a line; compressed if it ends in .gz."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.arena.sprt import STRONGER, UNDECIDED, verdict_of

        against = self.against or _shipped_like(self.player, self.rules_for((self.player,)))
        rules = self.rules_for((self.player, against))
        if rules.players > 2:
            raise UsageError(f"gate: a test of two players, the rules are for {rules.players}")
        shared = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(options.MatchSettings)
        }
        match = Match(
            first=self.player,
            second=against,
            games=self.games,
            batch=self.batch,
            sprt=self.sprt,
            records=self.records,
            **shared,
        )
        result, is_interrupted = match.play()
        decision = verdict_of(parse_sprt(self.sprt), result).decision
        words = {
            STRONGER: "passed: {} is not weaker than {}",
            UNDECIDED: "not passed: {} is not known to be as strong as {}",
        }
        found = words.get(decision, "not passed: {} is weaker than {}")
        print(f"gate {found.format(result.first, result.second)}")
        if is_interrupted:
            return EXIT_INTERRUPTED
        return 0 if decision == STRONGER else EXIT_NOT_PASSED


def _shipped_like(player: str, rules: Rules) -> str:
    """The name of the player that ships for some rules, else of the one for four stones, with the
    budget of a player: search, time or none."""
    from train import registry
    from train.checkpoints import pretrained

    model = pretrained.model_for(rules)
    shipped = SHIPPED if model is None else f"pretrained:{model}"
    name = registry.read_name(player)
    return f"net:{shipped}" if name.kind == "net" else f"{shipped}{name.budget_text}"


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
    min_walls: int = 4
    """Fewest walls of a sampled position; fewer take alpha-beta longer."""
    late: options.OptionalFile = None
    """File of late positions that `late` has proven, to measure there instead."""
    batch: int = 512
    """Positions evaluated in parallel."""
    seed: int = 0
    """Random seed."""
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
        if self.late is not None:
            return self._measure_late(self.late)
        if len(self.players) > 1:
            raise UsageError("accuracy: more than one player needs --late")
        player = next(iter(self.players))
        rules = options.read_rules_for(self.rules, [player], default=SOLVED_RULES)
        if self.positions:
            return self._measure_sample(player, rules)
        found = value_accuracy.value_accuracy(player, rules, batch=self.batch, seed=self.seed)
        Console().print(value_accuracy.accuracy_table(found))
        if self.json is not None:
            options.write_json(self.json, value_accuracy.accuracy_record(found))
        return 0

    def _measure_sample(self, player: str, rules: Rules) -> int:
        from train.analysis import sampled_accuracy
        from train.runtime.display import Display

        sample = sampled_accuracy.Sample(self.positions, self.min_walls, self.seed)
        options.check_files(self.json)
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
                player,
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
            found.append(
                late_accuracy.late_accuracy(player, late, batch=self.batch, seed=self.seed)
            )
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

    games: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FILE")]
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

        options.check_seed("late", self.seed)
        for name in ("positions", "per_game", "max_plies_left", "node_limit", "sample_positions"):
            if getattr(self, name) < 1:
                raise UsageError(f"late: {name} ({getattr(self, name)}) must be at least 1")
        recorded = late_proofs.read_games(self.games)
        options.check_files(self.out, self.sample)
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
