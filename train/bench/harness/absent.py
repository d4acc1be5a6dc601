"""Devices that are not there, to compile for: their compilers need neither device nor driver."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh

from train.runtime.devices import AXIS, Devices
from train.runtime.errors import UsageError

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
            found = topologies.get_topology_desc("", "cuda", topology="1x1x1", target_config=text)
        else:
            platform, (clock, memory) = "tpu", _FAMILIES[family]
            found = topologies.get_topology_desc(name, "tpu", **_bounds(chips))
    except (RuntimeError, ValueError) as error:
        if isinstance(error, (ValueError, jax.errors.JaxRuntimeError)):
            raise UsageError(f"bench: --target {name!r}: {' '.join(str(error).split())}") from None
        extra = "'wallgo-jax[cuda]'" if name in _GPUS else "'jax[tpu]'"
        raise UsageError(
            f"bench: --target {name} needs its compiler: pip install {extra}"
        ) from None
    mesh = Mesh(np.array(found.devices), (AXIS,))
    return Target(name, platform, clock, memory, Devices(mesh))


def _bounds(chips: str) -> dict[str, Any]:
    """A host of one chip is smaller than the usual."""
    sizes = [int(x) for x in chips.split("x")]
    is_alone = set(sizes) == {1}
    return {"chips_per_host_bounds": (*sizes, 1, 1)[:3]} if is_alone else {}
