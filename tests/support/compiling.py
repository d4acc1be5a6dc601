"""Settings of JAX under which tests compile quickly, or, inside `as_users`, as users do.

Most of the time of the tests is compiling, little of which faster programs would win back. So XLA's
optimizations are off, and its CPU compiler makes its loops in the older way, which takes a third of
the time. `as_users` leaves JAX as it is. The setting is part of every jitted function's key, so no
program compiled under one setting is used under the other.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
from jax._src import compiler

ROOT = Path(__file__).parents[2]
DEVICES = 2
CACHE = {
    "jax_compilation_cache_dir": str(ROOT / ".jax_cache"),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
_UNOPTIMIZED = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
_OLDER_LOOPS = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}

_is_quick = True
_as_users = jax.make_user_context(False)


def set_up() -> None:
    """Set JAX up for this process, before anything is computed."""
    jax.config.update("jax_num_cpu_devices", DEVICES)
    # Threads for sums over devices, as `train.runtime.devices.enlarge_pool` has them.
    os.environ.setdefault("NPROC", str(4 * DEVICES))
    jax.config.update("jax_numpy_rank_promotion", "raise")
    for name, value in CACHE.items():
        jax.config.update(name, value)
    options_as_they_come = getattr(compiler, "get_compile_options", None)
    if options_as_they_come is None:
        return  # Another JAX: everything is compiled as users compile it, which takes longer.

    quick = [*quick_options().items()]

    def get_compile_options(*arguments: Any, **named: Any) -> Any:
        options = options_as_they_come(*arguments, **named)
        if _is_quick:
            options.env_option_overrides = [*quick, *options.env_option_overrides]
        return options

    # JAX has no setting for XLA's options of all programs that could change while a process runs.
    compiler.get_compile_options = get_compile_options


@contextlib.contextmanager
def as_users() -> Iterator[None]:
    """Compile as users do, with XLA's optimizations."""
    global _is_quick
    before, _is_quick = _is_quick, False
    try:
        with _as_users(True):
            yield
    finally:
        _is_quick = before


@contextlib.contextmanager
def count_compilations() -> Iterator[Callable[[], int]]:
    """Yield a function that returns how many programs JAX has reported as compiled."""
    found = []

    def listen(event: str, duration: float, **more: object) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            found.append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield lambda: len(found)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@functools.cache
def quick_options() -> dict[str, Any]:
    """The options of XLA that make compiling quick, of those that this XLA has."""
    options = _UNOPTIMIZED | _OLDER_LOOPS
    return {name: value for name, value in options.items() if _has_option(name, value)}


def _has_option(name: str, value: Any) -> bool:
    """Whether this XLA has an option; one that it has not ends each compilation with an error."""
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options={name: value})
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return False
    return True


def environment() -> dict[str, str]:
    """Environment of another process with the same number of devices, settings and cache."""
    flags = [f"--{name}={str(value).lower()}" for name, value in quick_options().items()]
    return os.environ | {
        "PYTHONPATH": str(ROOT),
        "JAX_NUM_CPU_DEVICES": str(DEVICES),
        "XLA_FLAGS": " ".join([os.environ.get("XLA_FLAGS", ""), *flags]).strip(),
        **{name.upper(): str(value) for name, value in CACHE.items()},
    }
