"""Profiles one move of a search with its network: the kernels by time."""

import collections
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jax

from train.bench import search
from train.config import RunConfig
from train.runtime.devices import Devices

_TOP = 25  # kernels that are listed


def kernels(config: RunConfig, boards: int, devices: Devices) -> Iterator[str]:
    """Number, time and names of the kernels of a move by the config's search, on the first
    accelerator, else on the host."""
    count = config.search.simulations
    bench = search.make_bench(search.NETWORK, config, boards, count, devices)
    bench.run(2)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            bench.run(1)
        file = next(Path(folder).glob("**/*.xplane.pb"))
        planes = jax.profiler.ProfileData.from_file(str(file)).planes
    plane = min(planes, key=lambda x: (not x.name.startswith("/device:"), x.name))
    # A device shows the same work again by module and by operation.
    is_stream = "Stream" if plane.name.startswith("/device:") else ""
    events = [
        event for line in plane.lines if line.name.startswith(is_stream) for event in line.events
    ]
    times: collections.Counter[str] = collections.Counter()
    for event in events:
        times[event.name] += event.duration_ns / 1e6
    counts = collections.Counter(event.name for event in events)
    begins, ends = [x.start_ns for x in events], [x.start_ns + x.duration_ns for x in events]
    span = (max(ends, default=0) - min(begins, default=0)) / 1e6
    yield (
        f"{plane.name}: {len(events) / count:,.0f} kernels a simulation, busy "
        f"{sum(times.values()):.1f} ms of {span:.1f}"
    )
    for name, milliseconds in times.most_common(_TOP):
        yield f"{milliseconds:9.3f} ms {counts[name]:6} × {name[:90]}"
