"""The command that measures speed (`bench`)."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from train.cli.common import options
from train.cli.common.options import ConfigFile
from train.config import RunConfig, read_config
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts

if TYPE_CHECKING:
    from rich.console import Console

    from train.bench.scaling import Point
    from train.bench.suite import Request
    from train.experiments.strength import Curve
    from train.ratings.pool import Entrant

STRENGTH, ENGINE, COMPILE = "strength", "engine", "compile"
RUNS = Path("runs")
PARTS, REPORT = "parts", "report"
"""What is done where `--what` names none of those three."""
_TIMED = ("batch", "against", "simulations", "repeats", "seconds", "json", "scaling", "fit")
_TAKES = {
    STRENGTH: ("config", "what", "trained", "games", "opening_plies", "json"),
    ENGINE: ("config", "what", "player", "sessions", "seconds", "repeats", "json"),
    COMPILE: ("config", "what", "target", "programs", "simulations", "plies_a_game", "json"),
    PARTS: ("config", "what", "plot", *_TIMED),
    REPORT: ("config", "report", "minutes", *_TIMED),
}
"""The options that each of them reads; the engine takes a config to refuse it in its own words."""
_NEEDS = {"simulations": "--what search", "fit": "--what search", "scaling": "--plot"}
"""Options that are read, where there is no report, beside others alone."""


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measure the speed of the game, the search, self-play and the learner on this machine. Any key
    of the config can be changed: --some.key value."""

    EXAMPLES = (
        "bench --what env --batch 256,1024 --against pgx",
        "bench configs/gpu.toml --report out/bench",
        "bench configs/cpu.toml --what strength",
        "bench --what engine --player pretrained:wallzero-4stone@64",
        "bench configs/gpu.toml --what compile --target v5e:1x1",
    )

    config: ConfigFile = None
    """TOML file: its rules, network, search and learner are used; without one, the quickstart."""
    what: Annotated[str, tyro.conf.arg(metavar="PARTS")] = "env,search,selfplay,learn"
    """Parts to measure: env, search, selfplay, learn; or strength alone: train, and tell the
    minutes until the player passes 50 % and 90 % against heuristic-search:wjx@64; or engine alone:
    how fast sessions are answered; or compile alone: what the compiler of a TPU or GPU that is not
    here makes of the run's programs, and the hours of a million games that follow from it."""
    batch: Annotated[str, tyro.conf.arg(help_behavior_hint="")] = ""
    """Numbers of boards in parallel; without it 256 and 1024 on a CPU, on an accelerator 1024 to
    262144 for the game and 512 to 16384 for all else, as far as its memory goes."""
    against: Annotated[str, tyro.conf.arg(metavar="NAMES", help_behavior_hint="")] = ""
    """Baselines: pgx (its Othello), pgx-GAME (animal_shogi, chess, connect_four, gardner_chess,
    go_9x9, hex), pgx-alphazero (its self-play loop, of Othello), mctx (the same slots),
    mctx-public (the public actions); or parts: where the time of self-play goes."""
    simulations: int = 32
    """Simulations a move of the searches outside self-play."""
    repeats: int = 5
    """Timed runs of each measurement; their median is reported."""
    seconds: float = 0.3
    """Shortest time of a timed run, in seconds."""
    json: options.OptionalFile = None
    """File to write the figures to, as JSON."""
    plot: options.OptionalFile = None
    """File to draw the speed of the game by number of boards into."""
    scaling: Annotated[str, tyro.conf.arg(help_behavior_hint="")] = ""
    """Numbers of boards of the plot; without it powers of 4 from 1 to 65536, or on an accelerator
    to 262144."""
    fit: Annotated[str, tyro.conf.arg(metavar="BOARDS,SIMULATIONS")] = "4096,64"
    """Boards in parallel and simulations a move of the search whose memory is analysed."""
    report: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="")] = None
    """Directory for a report: everything is measured, and the config is trained for a while."""
    minutes: Annotated[
        float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="(default: 5)")
    ] = None
    """Report: minutes of training after compiling; on a CPU without it three iterations."""
    trained: Annotated[Path | None, tyro.conf.arg(metavar="RUN", help_behavior_hint="")] = None
    """Strength: a run whose kept checkpoints are measured, in place of training one."""
    games: int = 200
    """Strength: games of each checkpoint."""
    opening_plies: int = 2
    """Strength: random plies that both games of a pair start with."""
    player: str = "pretrained:wallzero-4stone@64"
    """Engine: who answers, with the simulations of an answer."""
    sessions: str = "1,16,256"
    """Engine: numbers of sessions that ask at the same time."""

    plies_a_game: float = 50.0
    """Compile: mean length of a game, in plies."""
    target: Annotated[str, tyro.conf.arg(metavar="DEVICE", help_behavior_hint="")] = ""
    """Compile: h100, h200, or a TPU with its chips, such as v5e:1x1, v6e:1x1, v5p:2x2x1."""
    programs: Annotated[str, tyro.conf.arg(metavar="PROGRAMS")] = (
        "env,network,tree,search,selfplay,learn"
    )
    """Compile: programs to compile."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        from rich.console import Console

        from train.bench import report
        from train.cli.bench_report import PLOT_FILE, Pages, measured
        from train.runtime.devices import set_gpu_flags

        config, mode = read_config(self.config, overrides), self._mode()
        self._check_options(mode)
        set_gpu_flags(deterministic=config.deterministic, loops_in_graphs=config.loops_in_graphs)
        if mode == STRENGTH:
            return self._strength(config, overrides)
        if mode == ENGINE:
            return self._engine(overrides)
        if mode == COMPILE:
            return self._compile(config)
        request = self._request(config)
        batches = _numbers_or_none("scaling", self.scaling)
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise UsageError(f"bench: --minutes ({self.minutes}) must be above 0")
        options.check_pictures(self.plot)
        options.check_files(self.json, self.plot, inputs=[self.config])
        console = Console()
        if self.report is None:
            pages, figures = None, measured(request, console)
        else:
            # Written after each part: a report that is interrupted keeps what it has.
            pages = Pages(self.report, self._command(overrides), request)
            figures = measured(request, console, pages.keep)
            pages.keep(figures)
        console.print(report.bench_report(figures))
        points: list[Point] = []
        plot = self.plot if self.report is None else self.report / PLOT_FILE
        if plot is not None:
            points = self._swept(request, batches, plot, console)
        if self.json is not None:
            options.write_json(self.json, report.bench_record(request, figures, points))
        if pages is not None:
            pages.go_on(points, minutes=self.minutes)
        return 0

    def _mode(self) -> str:
        """Which of `_TAKES` is asked for.

        Raises:
          UsageError: one that is done alone, and something else.
        """
        if "arithmetic" in _names(self.what):
            raise UsageError(
                f"bench: --what arithmetic is part of --what {COMPILE} --target DEVICE"
            )
        for mode, done in ((STRENGTH, "measured"), (ENGINE, "measured"), (COMPILE, "done")):
            if mode in _names(self.what):
                if _names(self.what) != (mode,) or self.report is not None:
                    raise UsageError(f"bench: --what {mode} is {done} alone, without --report")
                return mode
        return PARTS if self.report is None else REPORT

    def _check_options(self, mode: str) -> None:
        """Refuse what a mode would not read."""
        taken = set(_TAKES[mode])
        if mode == PARTS:
            asked = {f"--what {name}" for name in _names(self.what)}
            asked |= {"--plot"} if self.plot is not None else set()
            taken -= {name for name, wanted in _NEEDS.items() if wanted not in asked}
        for field in dataclasses.fields(self):
            name, option = field.name, f"--{field.name.replace('_', '-')}"
            if name in taken or getattr(self, name) == field.default:
                continue
            if mode != PARTS:
                raise UsageError(f"bench: {option} is not for {_called(mode)}")
            wanted = _NEEDS.get(name) or _called(next(x for x in _TAKES if name in _TAKES[x]))
            raise UsageError(f"bench: {option} is for {wanted}")

    def _command(self, overrides: Sequence[str]) -> str:
        """The command with all that is not by default."""
        given = [] if self.config is None else [str(self.config)]
        words = [*given, *options.changed_options(self, "config"), *overrides]
        return f"python -m train bench {shlex.join(words)}"

    def _engine(self, overrides: Sequence[str]) -> int:
        """Measure the sessions of an engine, by the rules that its player has learned."""
        from rich.console import Console

        from train.bench import engine_speed

        if self.config is not None or overrides:
            raise UsageError(f"bench: --what {ENGINE} takes --player in place of a config")
        if self.repeats < 1:
            raise UsageError(f"bench: --repeats ({self.repeats}) must be at least 1")
        if not 0 <= self.seconds < math.inf:
            raise UsageError(f"bench: --seconds ({self.seconds}) must not be negative")
        numbers = _numbers("sessions", self.sessions)
        options.check_files(self.json)
        console = Console()
        with console.status("bench") as status:
            found = engine_speed.measure(
                self.player,
                options.read_rules_for("", (self.player,)),
                sessions=numbers,
                seconds=self.seconds,
                rounds=self.repeats,
                on_progress=status.update,
            )
        console.print(engine_speed.table(found))
        if self.json is not None:
            options.write_json(self.json, engine_speed.record(found))
        return 0

    def _compile(self, config: RunConfig) -> int:
        """Show what the compiler of a device makes of the run's programs; the exit code is 1 where
        one does not compile."""
        from rich.console import Console

        from train.bench import compile_report, suite
        from train.bench.harness.absent import absent_devices
        from train.bench.parts.traced import PROGRAMS

        suite.check_rules(config, "bench")
        names = _names(self.programs)
        if not names or set(names) - set(PROGRAMS):
            raise UsageError(
                f"bench: --programs {self.programs!r} is unknown; allowed: {', '.join(PROGRAMS)}"
            )
        if self.simulations < 1:
            raise UsageError(f"bench: --simulations ({self.simulations}) must be at least 1")
        if not 1 <= self.plies_a_game < math.inf:
            raise UsageError(f"bench: --plies-a-game ({self.plies_a_game}) must be at least 1")
        options.check_files(self.json, inputs=[self.config])
        console = Console()
        with console.status("bench") as status:
            found = compile_report.compile_for(
                absent_devices(self.target),
                config,
                names,
                simulations=self.simulations,
                plies_a_game=self.plies_a_game,
                on_progress=status.update,
            )
        console.print(compile_report.tables(found), highlight=False)
        if self.json is not None:
            options.write_json(self.json, compile_report.record(found))
        return int(bool(found.failed))

    def _check_trained(self, overrides: Sequence[str]) -> None:
        """Refuse a config beside a run, which has its own."""
        given = [*overrides] if self.config is None else [str(self.config), *overrides]
        if self.trained is not None and given:
            raise UsageError(
                f"bench: --trained {self.trained} has a config of its own: leave out "
                f"{' '.join(given)}"
            )

    def _strength(self, config: RunConfig, overrides: Sequence[str]) -> int:
        """Train unless a run is named, and measure its kept checkpoints."""
        from rich.console import Console

        from train.config import read_saved_config
        from train.experiments import strength
        from train.experiments.lib.pages import plain_data
        from train.loop import training

        self._check_trained(overrides)
        run = self.trained
        if run is not None:
            config = read_saved_config(run)
        options.check_games(
            "bench", config.rules, games=self.games, opening_plies=self.opening_plies
        )
        options.check_files(self.json, inputs=[self.config])
        if run is None:
            config = strength.training_config(config, f"{config.name}-{STRENGTH}")
            run = RUNS / config.name
            if not training.train(config, RUNS, resume=run.is_dir()):
                return EXIT_INTERRUPTED
        curve = self._measured_curve(run, config)
        caption = strength.caption(config, games=self.games, opening_plies=self.opening_plies)
        console = Console()
        console.print(strength.table(curve, title=f"Strength of {run}, {caption}"))
        console.print(strength.time_line(curve), highlight=False, soft_wrap=True)
        for passed in curve.passings:
            console.print(strength.passing_line(passed, curve), highlight=False)
        if self.json is not None:
            options.write_json(self.json, {"run": str(run)} | plain_data(curve))
        return 0

    def _measured_curve(self, run: Path, config: RunConfig) -> Curve:
        from train.experiments import strength
        from train.runtime.display import Display

        with (
            Display() as display,
            display.task("strength", 0, "games") as task,
            interrupts("finished matches are kept"),
        ):

            def on_match(entrant: Entrant, number: int, count: int) -> Callable[[int], None]:
                if not display.is_live:
                    display.say(f"{entrant.name}: {number + 1} of {count}")
                task.keep(entrant.name)
                task.compile(count * self.games)
                return lambda done: task(number * self.games + done)

            return strength.measure(
                run,
                config,
                games=self.games,
                opening_plies=self.opening_plies,
                on_match=on_match,
            )

    def _request(self, config: RunConfig) -> Request:
        from train.bench.suite import PARTS, Request

        fit = _numbers("fit", self.fit)
        if len(fit) != 2 or fit[1] < 2:
            raise UsageError("bench: --fit must be boards, then simulations from 2 on")
        return Request(
            config=config,
            parts=_names(self.what) if self.report is None else PARTS,
            batches=_numbers_or_none("batch", self.batch),
            against=_names(self.against),
            simulations=self.simulations,
            repeats=self.repeats,
            seconds=self.seconds,
            fit=(fit[0], fit[1]),
        )

    def _swept(
        self, request: Request, batches: tuple[int, ...], plot: Path, console: Console
    ) -> list[Point]:
        from train.bench import report, scaling
        from wallgo_jax.game.rules import name_of

        with console.status("scaling") as status:
            points = scaling.sweep(
                request.config.rules,
                batches=batches,
                seconds=self.seconds,
                repeats=self.repeats,
                on_progress=status.update,
            )
        title = f"Random play of {name_of(request.config.rules)} on {report.chip()}"
        scaling.draw(plot, points, title=title)
        options.say_written(plot, "plot")
        for line in report.scaling_lines(points):
            console.print(line)
        return points


def _called(mode: str) -> str:
    """A mode as the command line asks for it."""
    return f"--{REPORT}" if mode == REPORT else f"--what {mode}"


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(option: str, text: str) -> tuple[int, ...]:
    names = _names(text)
    if not names or not all(name.isdecimal() and int(name) > 0 for name in names):
        raise UsageError(f"bench: --{option} {text!r} must be numbers from 1 on, with commas")
    return tuple(map(int, names))


def _numbers_or_none(option: str, text: str) -> tuple[int, ...]:
    """The numbers that are named, if any are."""
    return _numbers(option, text) if text else ()
