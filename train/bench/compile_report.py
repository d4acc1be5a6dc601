"""Compiles a run's programs for a TPU or GPU that is not there, and reports what the compiler made
of them. Nothing runs: milliseconds and cycles are estimates, all else is counted.

On TPUs the compiler estimates the cycles of each kernel. It leaves out what a gather or a scatter
waits for: CYCLES_AN_INDEX are added for each index, as the bundles of a compiled gather have them.
Loops that data end count WAY_DOWN turns. For GPUs there is no estimate: the report counts kernels,
and conditions that the host reads, which it does where no CUDA graph holds a loop.

B boards.
"""

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh
from jax.stages import Traced
from rich.console import Group
from rich.text import Text

from train.bench import hlo
from train.bench.hlo import Loop
from train.bench.search import NETWORK, UNIFORM, make_searcher
from train.bench.timing import compile_traced
from train.config import RunConfig, config_to_dict
from train.data.selfplay import first_boards
from train.loop import programs
from train.loop.compiling import LEARNING, SELFPLAY, traces_of_run
from train.loop.opponent_weights import load_opponent
from train.loop.tables import tables_of, variants_of
from train.network import channels_of
from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, Devices, tracing_for
from train.runtime.display import Table
from train.runtime.errors import UsageError
from train.search.search import cast_own_weights
from wallgo_jax import env as env_lib
from wallgo_jax.game.state import State

ENV_BOARDS = 65_536
PROGRAMS = ("env", "network", "tree", "search", "selfplay", "learn")
CYCLES_AN_INDEX = 13.5
WAY_DOWN = 2.2
"""Nodes below the root that a simulation reads, the mean of a search of 32 simulations."""
COUNTED = ("gather", "gather indices", "scatter", "sort", "convert", "copy")
_MAIN = {
    **dict.fromkeys(("tree", "search", "selfplay"), "train/search/"),
    "learn": "train/loop/programs.py",
}
"""Where the main loop of a program stands: over simulations, rounds of them, or steps."""
_GPU_OPTIONS = {"xla_gpu_enable_triton_gemm": False, "xla_gpu_autotune_level": 0}
"""Without a device nothing chooses the tiles of a product, and some do not compile."""
_FAMILIES = {"v5e": (1.5e9, 16e9), "v5p": (1.75e9, 95e9), "v6e": (1.75e9, 32e9)}
"""Cycles a second, by which the matrix units reach the published peak of bfloat16, and bytes of
memory. Source: Google Cloud Documentation, TPU v5e, v5p, v6e."""
_GPUS = {"h100": 84_942_979_072, "h200": 151_397_597_184}
"""Bytes of memory, as in their descriptions."""
_DESCRIPTIONS = Path(__file__).parent / "targets"
_ALONE = ("TPU_SKIP_MDS_QUERY", "ALLOW_MULTIPLE_LIBTPU_LOAD", "JAX_SKIP_CUDA_CONSTRAINTS_CHECK")
"""Variables by which the compilers look for no device and no driver."""


class Target(NamedTuple):
    """A device, or several of a kind, to compile for."""

    name: str
    platform: str  # `tpu` or `gpu`
    clock: float | None  # cycles a second; None where the compiler estimates none
    memory: float  # bytes of one device
    devices: Devices  # to compile for; nothing runs on them


def absent_devices(name: str) -> Target:
    """The devices of a target; call it before JAX starts its devices.

    Raises:
      UsageError: there is no such target, or its compiler is not installed.
    """
    family, _, chips = name.partition(":")
    has_chips = re.fullmatch(r"\d+(x\d+)*", chips)
    if name not in _GPUS and (family not in _FAMILIES or not has_chips):
        allowed = ", ".join((*_GPUS, *(f"{each}:CHIPS" for each in _FAMILIES)))
        raise UsageError(
            f"bench: --target {name!r} is unknown; allowed: {allowed}, such as v5e:1x1 or v5p:2x2x1"
        )
    for key in _ALONE:
        os.environ.setdefault(key, "1")
    jax.config.update("jax_platforms", "cpu")
    # What is compiled here is for no device of this machine, and its seconds are to be measured.
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        if name in _GPUS:
            platform, clock, memory = "gpu", None, _GPUS[name]
            text = (_DESCRIPTIONS / f"{name}.txtpb").read_text(encoding="utf-8")
            topology = topologies.get_topology_desc(
                "", "cuda", topology="1x1x1", target_config=text
            )
        else:
            platform, (clock, memory) = "tpu", _FAMILIES[family]
            sizes = [int(x) for x in chips.split("x")]
            # A host of one chip is smaller than the usual.
            bounds = {"chips_per_host_bounds": (*sizes, 1, 1)[:3]} if set(sizes) == {1} else {}
            topology = topologies.get_topology_desc(name, "tpu", **bounds)
    except (RuntimeError, ValueError) as error:
        reason = f"{name!r}: {' '.join(str(error).split())}"
        if not isinstance(error, ValueError | jax.errors.JaxRuntimeError):
            extra = "'wallgo-jax[cuda]'" if name in _GPUS else "'jax[tpu]'"
            reason = f"{name} needs its compiler: pip install {extra}"
        raise UsageError(f"bench: --target {reason}") from None
    mesh = Mesh(np.array(topology.devices), (AXIS,))
    return Target(name, platform, clock, memory, Devices(mesh))


def make_traces(
    config: RunConfig, devices: Devices, *, simulations: int
) -> dict[str, Callable[[], Traced]]:
    """Functions that trace the programs of PROGRAMS; call them within `tracing_for`, as this.

    `env` is a step with auto-reset of ENV_BOARDS boards, `network` an evaluation of the boards of
    self-play, `tree` and `search` a move of all of them without and with the network. `selfplay`
    and `learn` are a run's own.

    Args:
      simulations: of `tree` and `search`.

    Raises:
      UsageError: boards or samples cannot be shared by the devices, or the frozen opponent of
        self-play cannot be loaded.
    """
    boards, rules = config.selfplay.boards, config.rules
    opponent = load_opponent(config)
    tables = tables_of(config, devices, opponent)
    network_alone = programs.network_of(tables.learn)
    variants = variants_of(config)
    weights = devices.like(network_alone.shapes, EVERYWHERE)

    def of_run() -> dict[str, list[Traced]]:
        like = programs.state_like(tables, variants)
        theirs = None if opponent is None else opponent.trained.variables
        done = config.iterations - 1
        return traces_of_run(config, tables, like, variants, theirs, done=done)

    def env() -> Traced:
        env = env_lib.make(rules)
        keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), ENV_BOARDS))
        states = jax.eval_shape(jax.vmap(env.init), keys)
        actions = jax.ShapeDtypeStruct((ENV_BOARDS,), jnp.int32)
        step = jax.jit(jax.vmap(env.step_auto_reset), donate_argnums=0)
        return step.trace(*devices.like((states, actions), BY_BOARD))

    def network() -> Traced:
        channels = len(channels_of(config.network, rules.players))
        planes = jax.ShapeDtypeStruct((boards, rules.size, rules.size, channels), jnp.bool_)
        return jax.jit(network_alone.evaluate).trace(weights, devices.like(planes, BY_BOARD))

    def move(kind: str, variables: Any) -> Traced:
        search = make_searcher(kind, config, simulations)

        def on_device(variables: Any, states: State, key: jax.Array) -> Any:
            variables = cast_own_weights(variables, config.network) if variables else ()
            return search(variables, states, key)

        program = devices.per_device(on_device, (EVERYWHERE, BY_BOARD, EVERYWHERE), BY_BOARD)
        states = State(variants, jax.eval_shape(first_boards, variants).position)
        key = devices.like(jax.eval_shape(jax.random.key, 0), EVERYWHERE)
        return jax.jit(program).trace(variables, devices.like(states, BY_BOARD), key)

    return {
        "env": env,
        "network": network,
        "tree": lambda: move(UNIFORM, ()),
        "search": lambda: move(NETWORK, weights),
        "selfplay": lambda: of_run()[SELFPLAY][-1],
        "learn": lambda: of_run()[LEARNING][0],
    }


def compile_for(
    target: Target,
    config: RunConfig,
    names: Sequence[str],
    *,
    simulations: int,
    on_progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Compile programs of a run for a target.

    Args:
      names: of PROGRAMS.
      simulations: of the programs `tree` and `search`.
      on_progress: gets a line before each program.

    Returns:
      By name under `programs` a `program_record`, under `failed` why one does not compile.

    Raises:
      UsageError: as `make_traces`.
    """
    programs, failed = {}, {}
    with tracing_for(target.platform):
        traces = make_traces(config, target.devices, simulations=simulations)
        for name in names:
            on_progress(f"{name} for {target.name}: compiling")
            try:
                programs[name] = _compile(name, traces[name](), target)
            except jax.errors.JaxRuntimeError as error:
                failed[name] = " ".join(str(error).split())[:500]
    return {
        "target": target.name,
        "jax": jax.__version__,
        "config": config_to_dict(config),
        "programs": programs,
        "failed": failed,
    }


def _compile(name: str, traced: Traced, target: Target) -> dict[str, Any]:
    """`program_record` of a program, and how it compiled."""
    with tempfile.TemporaryDirectory() as dump:
        options = _GPU_OPTIONS | {"xla_dump_to": dump} if target.platform == "gpu" else None
        compiled, stats = compile_traced(lambda: traced, lambda x: x.lower().compile(options))
        program = hlo.read_program(compiled.as_text() or "")
        outside: frozenset[str] = frozenset()
        if target.platform == "gpu":
            outside = hlo.conditions_outside_graphs(program, _thunks(Path(dump)))
    return {
        "seconds": stats.compile_seconds,
        "bytes": stats.peak_bytes,
        "share": stats.peak_bytes / target.memory,
        **program_record(name, hlo.read_loops(program, outside), target.clock),
    }


def _thunks(dump: Path) -> str:
    """XLA's dump of the host's work for a GPU, after the passes that make graphs where they changed
    it."""
    for ending in ("thunk_sequence_after_thunk_passes", "thunk_sequence"):
        for file in dump.glob(f"*.{ending}.txt"):
            return file.read_text(encoding="utf-8")
    return ""


def program_record(name: str, whole: Loop, clock: float | None) -> dict[str, Any]:
    """Figures of a compiled program, and of a turn of its main loop (`turn_*`, where it has one),
    those of inner loops included.

    `padding` is bytes as laid out over bytes of elements, of the large arrays that the program
    takes and its loops carry. `ms` is None where there is no estimate or data end the main loop;
    `turn_ms_low` leaves CYCLES_AN_INDEX out.
    """
    rows = list(whole.rows(WAY_DOWN))
    elements, laid_out = (sum(loop.carried[i] for _, _, loop in rows) for i in (0, 1))
    place = _MAIN.get(name)
    inside = [loop for _, _, loop in rows if place and loop.place.startswith(place)]
    main = max(inside, key=lambda loop: loop.total(lambda x: len(x.kernels), 1), default=None)

    def milliseconds(loop: Loop, an_index: float = CYCLES_AN_INDEX) -> float | None:
        cycles = loop.total(lambda each: each.cycles(an_index), WAY_DOWN)
        return None if clock is None else cycles / clock * 1e3

    turn = {}
    if main is not None:
        turn = {
            "turn_ms": milliseconds(main),
            "turn_ms_low": milliseconds(main, an_index=0.0),
            "turn_kernels": main.total(lambda loop: len(loop.kernels), WAY_DOWN),
            "turn_sorts": main.total(lambda loop: loop.counts["sort"], WAY_DOWN),
            "turn_reads": main.total(_reads, WAY_DOWN) + main.is_read,
        }
    return {
        "padding": laid_out / elements if elements else 1.0,
        "ms": milliseconds(whole) if main is None or main.turns is not None else None,
        **turn,
        "loops": [
            {
                "place": loop.place or loop.name,
                "depth": depth,
                "turns": loop.turns,
                "kernels": len(loop.kernels),
                **({"cycles": loop.cycles(CYCLES_AN_INDEX)} if clock else {}),
                **{kind: loop.counts[kind] for kind in COUNTED},
            }
            for depth, _, loop in rows
        ],
    }


def _reads(loop: Loop) -> float:
    """Conditions that the host reads in a turn: those of a loop once more than it turns."""
    return loop.branches_read + (WAY_DOWN + 1) * sum(inner.is_read for inner in loop.inner)


def tables(report: dict[str, Any]) -> Group:
    """A report for the console: a row a program, then the loops of each."""
    title = f"{report['config']['name']} compiled for {report['target']}"
    heads = ("", "compile s", "MB", "of memory", "padding", "ms", "a turn: ms", "kernels", "sorts")
    turn = ("turn_kernels", "turn_sorts", "turn_reads")
    rows = []
    for name, figures in report["programs"].items():
        cells = [name, f"{figures['seconds']:.1f}", f"{figures['bytes'] / 1e6:,.1f}"]
        cells += [f"{figures['share']:.1%}", f"{figures['padding']:.2f}"]
        cells += [_shown(figures.get(key), "#.3g") for key in ("ms", "turn_ms")]
        rows.append([*cells, *(_shown(figures.get(key), ",.0f") for key in turn)])
    lines = [f"{name} does not compile: {reason}" for name, reason in report["failed"].items()]
    loops = (_loop_table(name, x["loops"]) for name, x in report["programs"].items())
    return Group(Table(title, (*heads, "host reads"), rows), *map(Text, lines), *loops)


def _loop_table(name: str, loops: list[dict[str, Any]]) -> Table:
    figures = [key for key in loops[0] if key not in ("place", "depth", "turns")]
    rows = [
        [
            "  " * loop["depth"] + loop["place"],
            "by data" if loop["turns"] is None else f"{loop['turns']:,}",
            *(f"{loop[key]:,.0f}" if loop[key] else "" for key in figures),
        ]
        for loop in loops
    ]
    return Table(name, ("loop", "turns", *figures), rows)


def _shown(number: float | None, form: str) -> str:
    return "" if number is None else format(number, form)
