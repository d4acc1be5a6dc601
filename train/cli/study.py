"""The command that measures the papers' results on our own players (`study`)."""

import contextlib
import dataclasses
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from train.cli.common import options
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts

Topic = Literal[
    "features",
    "blocks",
    "size",
    "balance",
    "mobility",
    "footing",
    "transfer",
    "padding",
    "corridors",
    "adversary",
    "mixed",
]


@dataclasses.dataclass(frozen=True)
class Study:
    """Measure one of the papers' results: games, searches and matches, written as a page with
    tables, plots and figures. The same command goes on where it was interrupted."""

    EXAMPLES = (
        "study balance",
        "study footing --config configs/study/accelerator.toml --out out/large",
    )

    topic: Annotated[tyro.conf.Positional[Topic], tyro.conf.arg(metavar="TOPIC")]
    """features: plane sets trained and matched; blocks: residual, Transformer and walled blocks
    likewise; size: how large the game is; balance: who wins, and openings; mobility: reachability
    control and passing; footing: equal time, many simulations, what a doubling is worth;
    transfer: warm starts against training from nothing; padding: small boards inside a large
    grid; corridors: what frozen trunks know of far corridors; adversary: adversaries trained
    against frozen victims; mixed: one network for several rule sets, beside specialists."""
    config: Annotated[
        options.OptionalFile, tyro.conf.arg(help_behavior_hint="(default: the scale of a CPU)")
    ] = None
    """TOML file with the scale (configs/study/)."""
    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("out/study")
    """Directory of the topics' folders."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.runtime.display import Display
        from train.study.scale.reading import read_scale
        from train.study.study import study_topic

        words, scale = self._words(), read_scale(self.config)

        @contextlib.contextmanager
        def task(title: str, total: int, unit: str) -> Iterator[Callable[[int], Any]]:
            # A bar of its own: a training between two of them shows one, too.
            with Display() as display, display.task(title, total, unit) as shown:
                yield shown

        try:
            with interrupts("what is finished is kept"):
                found, files = study_topic(self.topic, scale, self.out, command=words, task=task)
        except KeyboardInterrupt:
            print(f"stopped; to go on: {words}", file=sys.stderr)
            return EXIT_INTERRUPTED
        display = Display()
        for table in found.tables:
            for line in table.lines(display.console.width):
                display.say(line)
        for paragraph in found.text:
            display.say(paragraph)
        print(f"written: {files[0]} and {len(files) - 1} more files in {files[0].parent}")
        return 0

    def _words(self) -> str:
        words = ["python -m train study", self.topic]
        if self.config is not None:
            words += ["--config", shlex.quote(str(self.config))]
        if self.out != Path("out/study"):
            words += ["--out", shlex.quote(str(self.out))]
        return " ".join(words)
