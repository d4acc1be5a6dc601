"""Devices as a mesh of one axis, along which boards are sharded; the flags that XLA reads before it
starts; the processes of a cluster.

Boards and samples are sharded over the devices; weights, optimizer and counters are replicated.
Self-play runs on each device for itself, so that none waits for another; the learner's sums,
gradients and batch statistics are those of all samples.

B boards, R rows, N samples.
"""

import dataclasses
import functools
import math
import os
import platform
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from train.runtime import cgroups
from train.runtime.errors import UsageError, one_line

Tree = TypeVar("Tree")

AXIS = "boards"
_MOST_CPU_DEVICES = 16  # beyond which boards are too few on each
_WAIT_FLAG = "xla_cpu_collective_call_terminate_timeout_seconds"
_LONGEST_WAIT = 300  # seconds
_THREADS = 4  # of each device; two hold for simple programs
_DEVICES_FLAG = "xla_force_host_platform_device_count"
_HEARTBEAT = 30  # seconds without a sign of life after which a process counts as lost
_LOST = ("gloo", "nccl", "connection closed", "connection reset", "heartbeat", "socket closed")
_PATIENCE = 24 * 3600  # seconds that processes wait at the end for the first to play its matches
_DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
EVERYWHERE = PartitionSpec()
BY_BOARD = PartitionSpec(AXIS)  # [B, ...] or [N, ...]
ROWS_BY_BOARD = PartitionSpec(None, AXIS)  # [R, B, ...]
_traced_for = jax.make_user_context(None)  # part of the key of every jitted function


@dataclasses.dataclass(frozen=True)
class Devices:
    """The mesh of all devices of all hosts."""

    mesh: Mesh

    @property
    def count(self) -> int:
        """Number of devices."""
        return self.mesh.size

    def sharding(self, spec: PartitionSpec) -> NamedSharding:
        """Sharding of an array."""
        return NamedSharding(self.mesh, spec)

    def shardings(self, specs: Any) -> Any:
        """`sharding`, for a tree."""
        is_leaf = lambda leaf: isinstance(leaf, PartitionSpec)  # noqa: E731
        return jax.tree.map(self.sharding, specs, is_leaf=is_leaf)

    def per_device(self, function: Callable[..., Any], in_specs: Any, out_specs: Any) -> Any:
        """Map a function over the devices, each on its own boards (`jax.shard_map`)."""
        return jax.shard_map(
            function, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
        )

    def place(self, tree: Any, specs: Any) -> Any:
        """As `placed`, by a spec for each array or branch of the tree."""
        return placed(tree, self.shardings(specs))

    def like(self, tree: Any, specs: Any) -> Any:
        """Make shapes to compile for, sharded by a spec for each array or branch of the tree."""
        return shapes_of(tree, self.shardings(specs))

    def check_divides(self, **numbers: int) -> None:
        """Refuse numbers, by their keys, that are no multiples of the number of devices, with a
        UsageError."""
        for name, number in numbers.items():
            if number % self.count:
                key = name.replace("_", ".", 1)
                raise UsageError(f"{key} ({number}) must be a multiple of the {self.count} devices")


def shapes_of(tree: Any, shardings: Any) -> Any:
    """Shapes of a tree of arrays, with a sharding for each array or branch."""
    return _by_branch(
        lambda sharding, x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding),
        shardings,
        tree,
    )


def shardings_of(like: Any) -> Any:
    """The shardings of a tree of shapes."""
    return jax.tree.map(lambda x: x.sharding, like)


def constrained(tree: Tree, shardings: Any) -> Tree:
    """Have arrays of a program that is traced lie by a sharding for each array or branch."""
    return _by_branch(
        lambda sharding, x: jax.lax.with_sharding_constraint(x, sharding), shardings, tree
    )


def placed(tree: Any, shardings: Any) -> Any:
    """Put NumPy arrays, the same in every process, onto devices, by a sharding for each array or
    branch. They are copied: an array of a CPU may share memory with its source, and a program that
    is given it may consume it."""

    def put(sharding: Any, leaf: Any) -> jax.Array:
        leaf = np.asarray(leaf)
        return jax.make_array_from_callback(leaf.shape, sharding, lambda x: np.array(leaf[x]))

    return _by_branch(put, shardings, tree)


def _by_branch(function: Callable[[Any, Any], Any], shardings: Any, tree: Any) -> Any:
    def branch_of(sharding: Any, branch: Any) -> Any:
        return jax.tree.map(functools.partial(function, sharding), branch)

    return jax.tree.map(branch_of, shardings, tree)


def machine() -> str:
    """The machine in words: two rows with the same words can be compared by their times."""
    device = jax.devices()[0]
    on = f"{_cores()} cores, {platform.machine()}"
    on = on if device.platform == "cpu" else device.device_kind
    return f"{on}, {jax.device_count()} device(s), jax {jax.__version__}"


def _cores() -> int:
    """Cores that this process may use: of a container whose time is limited, the nearest number."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, round(min([cores, *cgroups.cpu_quotas()])))


def backend() -> str:
    """The platform that programs are traced for: that of JAX's default devices, or the one that
    `tracing_for` names."""
    return _traced_for.value or jax.default_backend()


def tracing_for(platform: str) -> AbstractContextManager[None]:
    """Trace for devices of a platform (`gpu`, `tpu`) that need not be there.

    Build what is traced inside, too: a network keeps the type of its numbers.
    """
    return _traced_for(platform)


def device_key(key: jax.Array) -> jax.Array:
    """Derive a device's own key from one that all share; call it within `per_device`."""
    return jax.random.fold_in(key, jax.lax.axis_index(AXIS))


def broadcast_boards(tree: Tree, boards: int) -> Tree:
    """Copy a tree of arrays of one board to [B] boards."""
    return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (boards, *np.shape(x))), tree)


def all_devices(count: int | None = None) -> Devices:
    """The mesh of all devices, or of the first `count`."""
    return Devices(Mesh(np.array(jax.devices()[:count]), (AXIS,)))


def local_devices() -> Devices:
    """The mesh of this process's devices."""
    return Devices(Mesh(np.array(jax.local_devices()), (AXIS,)))


def devices_for(**numbers: int) -> Devices:
    """All devices, or, on a CPU, as many as divide these numbers of boards or samples.

    Raises:
      UsageError: as `check_divides`, for accelerators and several processes.
    """
    if jax.devices()[0].platform == "cpu" and jax.process_count() == 1:
        return all_devices(math.gcd(jax.device_count(), *numbers.values()))
    devices = all_devices()
    devices.check_divides(**numbers)
    return devices


def set_up() -> None:
    """Give JAX the devices and the cache of compiled programs that commands and the Python
    interface have alike. What the program has set itself stays, and so do devices once JAX has
    started."""
    if not _has_started():
        number = getattr(jax.config, "jax_num_cpu_devices")  # noqa: B009
        if number < 1:
            use_all_cores()
        else:  # by JAX_NUM_CPU_DEVICES, or by the program
            enlarge_pool(number)
    if getattr(jax.config, "jax_compilation_cache_dir") is None:  # noqa: B009
        enable_compilation_cache()


def use_all_cores() -> None:
    """Make each core of the CPU a device, up to a power of two.

    A program on one device leaves other cores idle in most of its operations. Call it before
    anything is computed. JAX's own settings (JAX_NUM_CPU_DEVICES or XLA_FLAGS) take precedence.
    On a busy machine a device may come late to a sum over all: the others wait for minutes, not for
    XLA's 40 seconds, after which it ends the process.
    """
    flags, count = os.environ.get("XLA_FLAGS", ""), os.environ.get("JAX_NUM_CPU_DEVICES", "")
    if count or _DEVICES_FLAG in flags:
        enlarge_pool(int(count) if count.isdecimal() else _MOST_CPU_DEVICES)
        return
    devices = 1 << (min(_cores(), _MOST_CPU_DEVICES).bit_length() - 1)
    jax.config.update("jax_num_cpu_devices", devices)
    enlarge_pool(devices)
    if _WAIT_FLAG not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --{_WAIT_FLAG}={_LONGEST_WAIT}".strip()


def enlarge_pool(devices: int) -> None:
    """Have XLA's pool on the CPU hold threads enough for that number of devices.

    It has one for each core, also for those whose time a container does not have. A sum over
    several devices holds a thread for each that has arrived; where too few are left for the work of
    the others, all wait for one another and XLA ends the process. NPROC is where XLA reads the
    number of cores. Call it before anything is computed.
    """
    is_limited = bool(list(cgroups.cpu_quotas()))
    cores = _cores() if is_limited else os.cpu_count() or 1
    if devices > 1 or is_limited:
        os.environ.setdefault("NPROC", str(max(_THREADS * devices, cores)))


def set_gpu_flags(*, deterministic: bool) -> None:
    """Give XLA the flags for GPUs that a run's config asks for, before anything is computed.

    XLA reads its flags once a process. Programs of other devices are the same with them.

    Args:
      deterministic: take only operations whose results are the same in every run.

    Raises:
      UsageError: this process has used a GPU already, with other flags.
    """
    flags = os.environ.get("XLA_FLAGS", "").split()
    if not deterministic or _DETERMINISTIC in flags:
        return
    if _has_started():
        if jax.default_backend() in ("cpu", "tpu"):
            return
        raise UsageError(
            "deterministic: this process has used the GPU already; start it with "
            f"XLA_FLAGS={_DETERMINISTIC}"
        )
    os.environ["XLA_FLAGS"] = " ".join([*flags, _DETERMINISTIC])


def _has_started() -> bool:
    """Whether JAX has started its devices: from then on it refuses another number of them."""
    number = getattr(jax.config, "jax_num_cpu_devices")  # noqa: B009
    try:
        jax.config.update("jax_num_cpu_devices", max(number, 0) + 1)
    except RuntimeError:
        return True
    jax.config.update("jax_num_cpu_devices", number)
    return False


def enable_compilation_cache() -> None:
    """Keep compiled programs for the next start, in the user's cache directory or in
    JAX_COMPILATION_CACHE_DIR; nowhere if there is no such directory that can be written."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wallgo-jax"
        caches.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # Of an unknown user Python finds no home.
        return
    if os.access(caches, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(caches))


def initialize_distributed() -> None:
    """Join the processes of a cluster, by its launch variables (Slurm, Open MPI, Kubernetes, TPU
    pods; see `jax.distributed.initialize`), or by JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and
    JAX_PROCESS_ID.

    Raises:
      UsageError: no cluster is found, or the processes do not meet.
    """
    names = ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
    try:
        count, process = (int(os.environ[x]) if x in os.environ else None for x in names)
        jax.distributed.initialize(
            num_processes=count,
            process_id=process,
            heartbeat_timeout_seconds=_HEARTBEAT,
            shutdown_timeout_seconds=_PATIENCE,
        )
    except (ValueError, RuntimeError) as error:
        raise UsageError(f"distributed: {one_line(error)}") from None


def open_connections() -> None:
    """Have all processes compute with one another once, where there are several.

    Gloo connects a group of devices when they first compute together, and waits 30 seconds for all
    of them: a process that still compiles would come too late. Once they are connected they wait
    for one another for half an hour.
    """
    if jax.process_count() == 1:
        return
    # The groups of all later sums and copies: a device of each process, then all devices.
    sync_processes("every process has started")
    devices = all_devices()
    ones = devices.place(np.ones(devices.count, np.float32), BY_BOARD)
    jax.block_until_ready(jax.jit(jnp.sum, out_shardings=devices.sharding(EVERYWHERE))(ones))


def lost_process_message(error: Exception) -> str | None:
    """Return a line for an error that says that another process of this run has ended, else None.

    The caller must end by `runtime.interrupts.leave`: a plain exit waits for the other process.
    """
    text = one_line(error)
    if not jax.distributed.is_initialized() or not any(x in text.lower() for x in _LOST):
        return None
    return f"distributed: another process has ended or is out of reach ({text[:100]})"


def is_first_process() -> bool:
    """Whether this is the process that writes files and prints."""
    return jax.process_index() == 0


def sync_processes(where: str) -> None:
    """Wait until every process has called this with the same name."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(where)


def any_process(flag: bool) -> bool:
    """Whether the flag is set in any process; every process must call this."""
    if jax.process_count() == 1:
        return flag
    return bool(multihost_utils.process_allgather(np.array(flag)).any())


def local_copy(tree: Any) -> Any:
    """Copy replicated arrays to one device of this process."""
    return jax.tree.map(lambda x: x.addressable_data(0), tree)
