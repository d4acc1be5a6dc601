"""The papers' results, measured."""

import functools
from collections.abc import Mapping
from pathlib import Path

from train.api.arguments import Topic
from train.api.signatures import valid
from train.experiments.catalogue import run_experiment
from train.experiments.lib.pages import Report
from train.experiments.lib.scales import Scales, read_scales
from train.runtime.interrupts import Shown, follow


def run_study(
    topic: str,
    scale: Scales | Mapping[str, object] | Path | str | None = None,
    *,
    out: Path | str = "out/study",
    progress: Shown = False,
) -> Report:
    """Measure one of the papers' results, or read what an earlier call has finished.

    Args:
      topic: `size`, `balance`, `mobility`, `footing`, `transfer`, `corridors` and others that
        `python -m train experiment` has, but for `ablation`.
      scale: how much is done: a TOML file (configs/study/), its tables as a dict; by default the
        scale of a CPU.
      out: folder of the finished pieces and of the topic's page.
      progress: show bars.

    Returns:
      Text, tables and figures; draws itself in a notebook. `result.json` holds the same figures.

    Raises:
      UsageError: there is no such topic, or a key, a player or a file is not allowed.
    """
    valid(Topic, topic=topic)
    given = "" if scale is None else f", {str(scale) if isinstance(scale, Path) else scale!r}"
    command = f"train.run_study({topic!r}{given}, out={str(out)!r})"
    source = Path(scale) if isinstance(scale, str) else scale
    scales = source if isinstance(source, Scales) else read_scales(source)

    task = functools.partial(follow, progress)
    return run_experiment(topic, scales, Path(out), command=command, task=task)[0]
