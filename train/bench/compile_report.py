"""Compiles a run's programs for a TPU or GPU that is not there, and reports what the compiler made
of them. Nothing runs: milliseconds and cycles are estimates, all else is counted.

On TPUs the compiler estimates the cycles of each kernel. It leaves out what a gather or a scatter
waits for: CYCLES_AN_INDEX are added for each index, as the bundles of a compiled gather have them.
Loops that data end count WAY_DOWN turns. For GPUs there is no estimate: the report counts kernels,
and conditions that the host reads, which it does where no CUDA graph holds a loop.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.stages import Compiled, Traced
from rich.console import Group
from rich.table import Table
from rich.text import Text

from train.bench import arithmetic
from train.bench.harness import hlo
from train.bench.harness.absent import Target
from train.bench.harness.hlo import Instruction, Loop
from train.bench.harness.program import ProgramStats, timed
from train.bench.parts.traced import make_traces
from train.config import RunConfig, config_to_dict
from train.runtime.devices import tracing_for

CYCLES_AN_INDEX = 13.5
WAY_DOWN = 2.2
"""Nodes below the root that a simulation reads, the mean of a search of 32 simulations."""
DEAREST = 8
"""Kernels that are listed."""
COUNTED = ("gather", "gather indices", "scatter", "sort", "convert", "copy")
_MAIN = {
    **dict.fromkeys(("tree", "search", "selfplay"), "train/search/"),
    "learn": "train/loop/train_step.py",
}
"""Where the main loop of a program stands."""
_GPU_OPTIONS = {"xla_gpu_enable_triton_gemm": False, "xla_gpu_autotune_level": 0}
"""Without a device nothing chooses the tiles of a product, and some do not compile."""


class CompiledProgram(NamedTuple):
    """What the compiler made of a program."""

    name: str
    stats: ProgramStats
    whole: Loop
    target: Target
    place: Callable[[Instruction], str]

    @property
    def padding(self) -> float:
        """Bytes as laid out over bytes of elements, of the large arrays that the program takes and
        its loops carry."""
        carried = [loop.carried for _, _, loop in self.whole.rows(1)]
        elements = sum(each.elements for each in carried)
        return sum(each.laid_out for each in carried) / elements if elements else 1.0

    @property
    def main_loop(self) -> Loop | None:
        """The loop over simulations, or rounds of them, or over steps of learning."""
        place = _MAIN.get(self.name)
        inside = [x for _, _, x in self.whole.rows(1) if place and x.place.startswith(place)]
        return max(inside, key=lambda loop: loop.total(_num_kernels, 1), default=None)

    def figures(self) -> dict[str, float | None]:
        """Figures of the whole program and of a turn of its main loop, those of inner loops
        included. `ms` is None where there is no estimate or data end the main loop; `turn_ms_low`
        leaves CYCLES_AN_INDEX out."""
        main = self.main_loop
        ends = main is None or main.turns is not None
        found = {
            "seconds": self.stats.compile_seconds,
            "bytes": self.stats.peak_bytes,
            "share": self.stats.peak_bytes / self.target.memory,
            "padding": self.padding,
            "ms": self._milliseconds(self.whole) if ends else None,
        }
        if main is not None:
            found |= {
                "turn_ms": self._milliseconds(main),
                "turn_ms_low": self._milliseconds(main, an_index=0.0),
                "turn_kernels": main.total(_num_kernels, WAY_DOWN),
                "turn_sorts": main.total(lambda loop: loop.counts["sort"], WAY_DOWN),
                "turn_reads": main.total(_reads, WAY_DOWN) + main.is_read,
            }
        return found

    def _milliseconds(self, loop: Loop, an_index: float = CYCLES_AN_INDEX) -> float | None:
        clock = self.target.clock
        cycles = loop.total(lambda each: _cycles(each, an_index), WAY_DOWN)
        return None if clock is None else cycles / clock * 1e3

    def dearest(self) -> list[tuple[float, Instruction, str]]:
        """The kernels of the most cycles in the whole program, each with its cycles and place;
        empty where the compiler estimates none."""
        kernels = [
            (times * _kernel_cycles(each), each, self.place(each) or loop.place)
            for _, times, loop in self.whole.rows(WAY_DOWN)
            for each in (loop.kernels if self.target.clock else ())
        ]
        return sorted(kernels, key=lambda found: -found[0])[:DEAREST]


class FailedProgram(NamedTuple):
    """A program that does not compile."""

    name: str
    reason: str


class CompileReport(NamedTuple):
    """What the compiler of a target made of a run's programs."""

    config: RunConfig
    target: Target
    programs: tuple[CompiledProgram, ...]
    failed: tuple[FailedProgram, ...]
    plies_a_game: float

    @property
    def million_games(self) -> arithmetic.MillionGames | None:
        """The prediction; None without the main loops of self-play and learner, and as `arithmetic`
        has it."""
        found = {each.name: each.figures() for each in self.programs if each.main_loop}
        if not {"selfplay", "learn"} <= found.keys():
            return None
        return arithmetic.million_games(
            self.config,
            self.target.name.partition(":")[0],
            found["selfplay"],
            found["learn"],
            plies_a_game=self.plies_a_game,
        )


def compile_for(
    target: Target,
    config: RunConfig,
    names: Sequence[str],
    *,
    simulations: int,
    plies_a_game: float,
    on_progress: Callable[[str], None] = lambda text: None,
) -> CompileReport:
    """Compile programs of a run for a target.

    Args:
      names: of `train.bench.parts.traced.PROGRAMS`.
      simulations: of the programs `tree` and `search`.
      plies_a_game: mean length of a game, for the hours of a million.
      on_progress: gets a line before each program.

    Raises:
      UsageError: as `make_traces`.
    """
    found = []
    with tracing_for(target.platform):
        traces = make_traces(config, target.devices, simulations=simulations)
        for name in names:
            on_progress(f"{name} for {target.name}: compiling")
            found.append(_compile(name, traces[name], target))
    compiled = (each for each in found if isinstance(each, CompiledProgram))
    failed = (each for each in found if isinstance(each, FailedProgram))
    return CompileReport(config, target, tuple(compiled), tuple(failed), plies_a_game)


def _compile(
    name: str, trace: Callable[[], Traced], target: Target
) -> CompiledProgram | FailedProgram:
    traced = trace()
    with tempfile.TemporaryDirectory() as dump:
        options = _GPU_OPTIONS | {"xla_dump_to": dump} if target.platform == "gpu" else None

        def compile_it() -> tuple[Traced, Compiled]:
            return traced, traced.lower().compile(options)

        try:
            (_, compiled), stats = timed(compile_it)
        except jax.errors.JaxRuntimeError as error:
            return FailedProgram(name, " ".join(str(error).split())[:500])
        program = hlo.read_program(compiled.as_text() or "")
        outside: frozenset[str] = frozenset()
        if target.platform == "gpu":
            outside = hlo.conditions_outside_graphs(program, _thunks(Path(dump)))
    whole = hlo.read_loops(program, outside)
    return CompiledProgram(name, stats, whole, target, program.place)


def _thunks(dump: Path) -> str:
    """What the host of a GPU does: after the passes that make graphs, where they changed it."""
    for ending in ("thunk_sequence_after_thunk_passes", "thunk_sequence"):
        for file in dump.glob(f"*.{ending}.txt"):
            return file.read_text(encoding="utf-8")
    return ""


def _cycles(loop: Loop, an_index: float = CYCLES_AN_INDEX) -> float:
    return sum(_kernel_cycles(each, an_index) for each in loop.kernels)


def _kernel_cycles(each: Instruction, an_index: float = CYCLES_AN_INDEX) -> float:
    return each.cycles + an_index * each.indices


def _num_kernels(loop: Loop) -> int:
    return len(loop.kernels)


def _reads(loop: Loop) -> float:
    """Conditions that the host reads in a turn: those of a loop once more than it turns."""
    return loop.branches_read + (WAY_DOWN + 1) * sum(inner.is_read for inner in loop.inner)


def tables(report: CompileReport) -> Group:
    """The report for the console: a row a program, the hours, then the loops of each."""
    title = f"{report.config.name} compiled for {report.target.name}"
    whole = Table(title=title, title_justify="left")
    heads = ("", "compile s", "MB", "of memory", "padding", "ms", "a turn: ms", "kernels", "sorts")
    for index, head in enumerate((*heads, "host reads")):
        whole.add_column(head, justify="right" if index else "left")
    for each in report.programs:
        figures = each.figures()
        whole.add_row(
            each.name,
            f"{figures['seconds']:.1f}",
            f"{each.stats.peak_bytes / 1e6:,.1f}",
            f"{figures['share']:.1%}",
            f"{figures['padding']:.2f}",
            *(_shown(figures.get(key), "#.3g") for key in ("ms", "turn_ms")),
            *(_shown(figures.get(f"turn_{key}"), ",.0f") for key in ("kernels", "sorts", "reads")),
        )
    lines = [Text(f"{each.name} does not compile: {each.reason}") for each in report.failed]
    if games := report.million_games:
        lines += map(Text, arithmetic.lines(games))
    return Group(whole, *lines, *(part for each in report.programs for part in _details(each)))


def _details(found: CompiledProgram) -> list[Table | Text]:
    """The loops of a program, and its dearest kernels."""
    loops = Table(title=found.name, title_justify="left")
    estimates = ("cycles",) if found.target.clock else ()
    for index, head in enumerate(("loop", "turns", "kernels", *estimates, *COUNTED)):
        loops.add_column(head, justify="right" if index else "left", no_wrap=True)
    for depth, _, loop in found.whole.rows(WAY_DOWN):
        loops.add_row(
            "  " * depth + (loop.place or loop.name),
            "by data" if loop.turns is None else f"{loop.turns:,}",
            f"{len(loop.kernels):,}",
            *(f"{_cycles(loop):,.0f}" for _ in estimates),
            *(f"{loop.counts[kind]:,}" if loop.counts[kind] else "" for kind in COUNTED),
        )
    lines = [
        Text(f"{cycles:16,.0f} cycles  {each.kind} {place} {each.type[:60]}")
        for cycles, each, place in found.dearest()
    ]
    return [loops, *lines]


def _shown(number: float | None, form: str) -> str:
    return "" if number is None else format(number, form)


def record(report: CompileReport) -> dict[str, Any]:
    """The report, JSON-ready."""
    games = report.million_games
    return {
        "target": report.target.name,
        "jax": jax.__version__,
        "config": config_to_dict(report.config),
        "programs": {each.name: _record(each) for each in report.programs},
        "failed": {each.name: each.reason for each in report.failed},
        "million_games": games and games._asdict(),
    }


def _record(found: CompiledProgram) -> dict[str, Any]:
    return {
        **found.figures(),
        "loops": [
            {
                "name": loop.name,
                "place": loop.place,
                "depth": depth,
                "turns": loop.turns,
                "kernels": len(loop.kernels),
                "cycles": _cycles(loop) if found.target.clock else None,
                "conditions_read": loop.conditions_read,
                "counts": {kind: loop.counts[kind] for kind in COUNTED},
            }
            for depth, _, loop in found.whole.rows(WAY_DOWN)
        ],
        "dearest": [
            {"cycles": cycles, "kind": each.kind, "type": each.type, "place": place}
            for cycles, each, place in found.dearest()
        ],
    }
