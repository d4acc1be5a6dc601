"""Devices as a mesh of one axis, along which boards are sharded.

Boards and samples are sharded over the devices; weights, optimizer and counters are replicated.
Self-play runs on each device for itself, so that none waits for another; the learner's sums,
gradients and batch statistics are those of all samples.

B boards, R rows, N samples.
"""

import dataclasses
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from train.runtime.errors import UsageError

Tree = TypeVar("Tree")

AXIS = "boards"
_MOST_CPU_DEVICES = 16  # beyond which boards are too few on each
_PATIENCE = 24 * 3600  # seconds that processes wait at the end for the first to play its matches
EVERYWHERE = PartitionSpec()
BY_BOARD = PartitionSpec(AXIS)  # [B, ...] or [N, ...]
ROWS_BY_BOARD = PartitionSpec(None, AXIS)  # [R, B, ...]


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
        return jax.tree.map(self.sharding, specs, is_leaf=_is_spec)

    def per_device(self, function: Callable[..., Any], in_specs: Any, out_specs: Any) -> Any:
        """Map a function over the devices, each on its own boards (`jax.shard_map`)."""
        return jax.shard_map(
            function, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
        )

    def place(self, tree: Any, specs: Any) -> Any:
        """Put NumPy arrays, the same in every process, onto the devices."""

        def put(leaf: np.ndarray, spec: PartitionSpec) -> jax.Array:
            leaf = np.asarray(leaf)
            return jax.make_array_from_callback(
                leaf.shape, self.sharding(spec), lambda index: leaf[index]
            )

        return jax.tree.map(put, tree, specs)

    def like(self, tree: Any, specs: Any) -> Any:
        """Make shapes to compile for, sharded by a spec for each array or branch of the tree."""

        def shape(leaf: Any, spec: PartitionSpec) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=self.sharding(spec))

        return jax.tree.map(
            lambda spec, branch: jax.tree.map(lambda leaf: shape(leaf, spec), branch),
            specs,
            tree,
            is_leaf=_is_spec,
        )

    def check_divides(self, **numbers: int) -> None:
        """Refuse numbers that are not multiples of the number of devices.

        Raises:
          UsageError: which key, and how many devices there are.
        """
        for name, number in numbers.items():
            if number % self.count:
                key = name.replace("_", ".", 1)
                raise UsageError(f"{key} ({number}) must be a multiple of the {self.count} devices")


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


def use_all_cores() -> None:
    """Make each core of the CPU a device, up to a power of two.

    A program on one device leaves other cores idle in most of its operations. Call it before
    anything is computed. JAX's own settings (JAX_NUM_CPU_DEVICES or XLA_FLAGS) take precedence.
    """
    is_set = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if is_set or "JAX_NUM_CPU_DEVICES" in os.environ:
        return
    own = getattr(os, "sched_getaffinity", None)  # not on every system
    cores = len(own(0)) if own else os.cpu_count() or 1
    count = min(cores, _MOST_CPU_DEVICES)
    jax.config.update("jax_num_cpu_devices", 1 << (count.bit_length() - 1))


def enable_compilation_cache() -> None:
    """Keep compiled programs for the next start, in the user's cache directory or in
    JAX_COMPILATION_CACHE_DIR."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(caches) / "wallgo-jax"))


def initialize_distributed() -> None:
    """Join the processes of a cluster, by its launch variables (Slurm, Open MPI, Kubernetes, TPU
    pods; see `jax.distributed.initialize`), or by JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and
    JAX_PROCESS_ID.

    Raises:
      UsageError: no cluster is found, or the processes do not meet.
    """
    given = [os.environ.get(name) for name in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID")]
    try:
        count, own = (None if text is None else int(text) for text in given)
        jax.distributed.initialize(
            num_processes=count, process_id=own, shutdown_timeout_seconds=_PATIENCE
        )
    except (ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"distributed: {reason}") from None


def is_first_process() -> bool:
    """Whether this is the process that writes files and prints."""
    return jax.process_index() == 0


class Mute:
    """Stands in for an object that only the first process uses: every method does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


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


def _is_spec(leaf: Any) -> bool:
    return isinstance(leaf, PartitionSpec)
