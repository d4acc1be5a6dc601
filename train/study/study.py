"""One topic from its kept pieces to its folder: what the command `study` does."""

import contextlib
import dataclasses
from pathlib import Path

from train.runtime.devices import machine
from train.runtime.files import check_writable, locked
from train.study.frame.folder import PAGE, write_report
from train.study.frame.pieces import Pieces
from train.study.frame.report import Report
from train.study.frame.work import TaskMaker, Work
from train.study.scale.reading import StudyConfig
from train.study.topics import TOPICS


def study_topic(
    topic: str, scale: StudyConfig, out: Path, *, command: str, task: TaskMaker
) -> tuple[Report, list[Path]]:
    """Do what is left of a topic and write its folder.

    Args:
      topic: a key of `train.study.topics.TOPICS`.
      scale: how much is done.
      out: folder of all topics.
      command: that makes it again, for the page.
      task: shows a bar.

    Returns:
      What was found, and the files.

    Raises:
      UsageError: a player or a file is not allowed, or another process works in the folder.
    """
    directory = out / topic
    with contextlib.ExitStack() as stack:
        stack.enter_context(locked(directory))
        stack.callback(_remove_empty, directory)
        check_writable(directory / PAGE)
        pieces = Pieces(out, where=machine())
        found = TOPICS[topic](Work(scale, pieces, task))
        used = {"seed": scale.seed, topic: dataclasses.asdict(getattr(scale, topic))}
        return found, write_report(found, directory, command=command, scale=used, pieces=pieces)


def _remove_empty(directory: Path) -> None:
    """Remove a folder of a topic that never began."""
    with contextlib.suppress(OSError):
        directory.rmdir()
