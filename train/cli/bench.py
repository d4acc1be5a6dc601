"""The command that measures speed (`bench`)."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from train.api.arguments import arg
from train.api.signatures import names_in, only, without
from train.cli import options
from train.cli.options import ConfigFile
from train.config import RunConfig, read_config
from train.runtime.errors import UsageError
from train.runtime.fields import AtLeastOne, Count, Positive
from train.runtime.interrupts import EXIT_INTERRUPTED
from train.runtime.showing import sparing

if TYPE_CHECKING:
    from train.bench.suite import Figures, Request
    from train.ratings.pool import Entrant

RUNS = Path("runs")
STRENGTH, ENGINE, COMPILE = ALONE = ("strength", "engine", "compile")
"""What is measured alone."""
_OF_STRENGTH, _OF_ENGINE, _OF_COMPILE = (only(f"what={each}") for each in ALONE)
_TIMED = without(*(f"what={each}" for each in ALONE))


@dataclasses.dataclass(frozen=True)
class BenchCommand:
    """Measure the speed of the game, the search, self-play and the learner on this machine. Any key
    of the config can be changed: --some.key value."""

    config: Annotated[ConfigFile, without("what=engine")] = None
    """TOML file: its rules, network, search and learner are used; without one, the quickstart."""
    what: Annotated[str, arg("PARTS"), without("report")] = "env,search,selfplay,learn"
    """Parts to measure: env, search, selfplay, learn; table1, the networks of the ResTNet paper's
    Table 1; or only strength: train, and print the minutes until the player wins 50 % and 90 %
    against heuristic-search:wjx@64; or only engine: how fast sessions are answered; or only
    compile: what the compiler for a TPU or GPU makes of the run's programs, without that device."""
    batch: Annotated[str, arg(hint=""), _TIMED] = ""
    """Numbers of boards in parallel. By default 256 and 1024 on a CPU; on an accelerator 1024 to
    262144 for the game and 512 to 16384 for the rest, as its memory allows."""
    against: Annotated[str, arg("NAMES", ""), _TIMED] = ""
    """Baselines: pgx (its Othello), pgx-GAME (animal_shogi, chess, connect_four, gardner_chess,
    go_9x9, hex), pgx-alphazero (its self-play loop, of Othello), mctx (the same slots),
    mctx-public (the public actions); or parts: how the time of self-play is divided."""
    simulations: Annotated[AtLeastOne, only("what=search", "what=compile", "report")] = 32
    """Simulations a move of the searches outside self-play."""
    repeats: Annotated[AtLeastOne, without("what=strength", "what=compile")] = 5
    """Timed runs of each measurement; their median is reported."""
    seconds: Annotated[Positive, without("what=strength", "what=compile")] = 0.3
    """Shortest time of a timed run, in seconds."""
    json: options.Json = None
    plot: Annotated[options.Picture, without("report"), _TIMED] = None
    """File to draw the speed of the game by number of boards into."""
    scaling: Annotated[str, arg(hint=""), only("plot", "report")] = ""
    """Numbers of boards in the plot; by default powers of 4 from 1 to 65536, on an accelerator to
    262144."""
    report: Annotated[Path | None, arg("FOLDER", "")] = None
    """Directory for a report, for which everything is measured and the config is trained for a
    short time."""
    minutes: Annotated[Positive | None, arg("FLOAT", "(default: 5)"), only("report")] = None
    """Report: minutes of training, without compiling; by default three iterations on a CPU."""
    trained: Annotated[Path | None, arg("RUN", ""), _OF_STRENGTH] = None
    """Strength: measure the checkpoints of this run, in place of training one."""
    games: Annotated[AtLeastOne, _OF_STRENGTH] = 200
    """Strength: games of each checkpoint."""
    opening_plies: Annotated[Count, _OF_STRENGTH] = 2
    """Strength: random plies with which both games of a pair start."""
    player: Annotated[str, _OF_ENGINE] = "pretrained:wallzero-4stone@64"
    """Engine: the player that answers, with its simulations."""
    sessions: Annotated[str, _OF_ENGINE] = "1,16,256"
    """Engine: numbers of sessions that ask at the same time."""
    target: Annotated[str, arg("DEVICE", ""), _OF_COMPILE] = ""
    """Compile: h100, h200, or a TPU with its chips, such as v5e:1x1, v6e:1x1, v5p:2x2x1."""
    programs: Annotated[str, arg("PROGRAMS"), _OF_COMPILE] = (
        "env,network,tree,search,selfplay,learn"
    )
    """Compile: programs to compile."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        from train.runtime.devices import set_gpu_flags

        config = read_config(self.config, overrides)
        names = names_in(self.what)
        set_gpu_flags(deterministic=config.deterministic)
        for name, measure in zip(ALONE, (self._strength, self._engine, self._compile), strict=True):
            if name in names:
                own = f"--trained {self.trained}" if self.trained else f"--what {ENGINE}"
                given = [*filter(None, [self.config and str(self.config)]), *overrides]
                has_own = name == ENGINE or self.trained is not None
                if len(names) > 1:
                    raise UsageError(f"bench: --what {name} cannot be measured with other parts")
                if has_own and given:
                    raise UsageError(
                        f"bench: {own} has its own config: leave out {' '.join(given)}"
                    )
                return measure(config)
        return self._measure(config, overrides)

    def _measure(self, config: RunConfig, overrides: Sequence[str]) -> int:
        """Measure the parts of a request, and write what was measured after each."""
        from rich.console import Console

        from train.bench import report, suite, trainer
        from train.runtime.files import write_json
        from wallgo_jax.game.rules import name_of

        request, plot, console = self._request(config), self.plot, Console()
        command = f"python -m train bench {shlex.join(self._words(overrides))}"

        def save(figures: Figures, lines: Sequence[str] = ()) -> None:
            record = report.bench_record(figures, **report.about_of(request))
            if self.json is not None:
                with sparing(self.json):
                    write_json(self.json, record)
            if self.report is not None:
                with sparing(self.report / report.REPORT_FILE):
                    report.write_report(self.report, command, request, figures, lines)

        if self.report is not None:
            report.check_report(self.report)
            plot = self.report / report.PLOT_FILE
        with console.status("bench") as status:
            figures = suite.run_suite(request, status.update, on_part=save)
        console.print(report.bench_report(figures))
        if plot is not None:
            title = f"Random play of {name_of(config.rules)} on {report.chip()}"
            with sparing(plot):
                report.write_plot(plot, figures.rows, title=title)
            options.say_written(plot, "plot")
        if self.json is not None:
            options.say_written(self.json, "figures")
        if self.report is not None:
            save(figures, trainer.train_a_little(config, self.report, self.minutes))
            options.say_written(self.report / report.REPORT_FILE, "report")
        return 0

    def _request(self, config: RunConfig) -> Request:
        from train.bench import suite

        parts = names_in(self.what) if self.report is None else suite.DEFAULT_PARTS
        has_plot = self.plot is not None or self.report is not None
        return suite.Request(
            config=config,
            parts=(*parts, suite.PLOT) if has_plot else parts,
            batches=options.numbers_of("batch", self.batch),
            scaling=options.numbers_of("scaling", self.scaling),
            against=names_in(self.against),
            simulations=self.simulations,
            repeats=self.repeats,
            seconds=self.seconds,
        )

    def _words(self, overrides: Sequence[str]) -> list[str]:
        """The words of the command with all that is not by default."""
        config = [] if self.config is None else [str(self.config)]
        return [*config, *options.changed_options(self, "config"), *overrides]

    def _engine(self, config: RunConfig) -> int:
        """Measure the sessions of an engine, by the rules that its player has learned."""
        from rich.console import Console

        from train.api.players import rules_for
        from train.bench import engine_speed, report

        console, rules = Console(), rules_for((self.player,))
        with console.status("bench") as status:
            figures = engine_speed.measure(
                self.player,
                rules,
                sessions=options.numbers_of("sessions", self.sessions),
                seconds=self.seconds,
                rounds=self.repeats,
                on_progress=status.update,
            )
        console.print(report.bench_report(figures))
        about = {"player": self.player, "rules": rules.to_dict()}
        options.write_json(self.json, report.bench_record(figures, **about))
        return 0

    def _compile(self, config: RunConfig) -> int:
        """Show what the compiler of a device makes of the run's programs; the exit code is 1 where
        one does not compile."""
        from rich.console import Console

        from train.bench import compile_report, suite
        from train.runtime.files import plain_data

        suite.check_rules(config)
        names = names_in(self.programs)
        suite.check_names("programs", names or ("",), compile_report.PROGRAMS)
        console = Console()
        with console.status("bench") as status:
            compiled = compile_report.compile_for(
                compile_report.absent_devices(self.target),
                config,
                names,
                simulations=self.simulations,
                on_progress=status.update,
            )
        console.print(compile_report.tables(compiled), highlight=False)
        options.write_json(self.json, plain_data(compiled))
        return int(bool(compiled["failed"]))

    def _strength(self, config: RunConfig) -> int:
        """Train unless a run is named, and measure its kept checkpoints."""
        from train.arena.match_programs import check_opening
        from train.config import read_saved_config
        from train.experiments import strength
        from train.loop import training
        from train.runtime.display import Display
        from train.runtime.errors import check_two_players
        from train.runtime.files import plain_data
        from train.runtime.interrupts import follow

        run = self.trained
        if run is not None:
            config = read_saved_config(run)
        how: dict[str, Any] = {"games": self.games, "opening_plies": self.opening_plies}
        check_two_players(config.rules, f"bench: --what {STRENGTH}")
        check_opening(config.rules, self.opening_plies)
        if run is None:
            config = strength.training_config(config, f"{config.name}-{STRENGTH}")
            run = RUNS / config.name
            if not training.train(config, RUNS, resume=run.is_dir()):
                return EXIT_INTERRUPTED
        with follow(Display(), STRENGTH, answer="finished matches are kept") as work:

            def on_match(entrant: Entrant, number: int, count: int) -> Callable[[int], None]:
                if not work.display.is_live:
                    work.display.say(f"{entrant.name}: {number + 1} of {count}")
                work.task.keep(entrant.name)
                work.task.compile(count * self.games)
                return lambda done: work.task(number * self.games + done)

            curve = strength.measure(run, config, **how, on_match=on_match)
        title = f"Strength of {run}, {strength.caption(config, **how)}"
        console = work.display.console
        console.print(strength.table(curve, title=title))
        console.print(strength.time_line(curve), highlight=False, soft_wrap=True)
        for passed in curve.passings:
            console.print(strength.passing_line(passed, curve), highlight=False)
        options.write_json(self.json, {"run": str(run)} | plain_data(curve))
        return 0
