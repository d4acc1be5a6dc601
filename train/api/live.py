"""A run's curves in a notebook, drawn in place while it trains."""

from collections.abc import Iterator
from typing import Any

from train.api.checks import check_whole
from train.api.runs import Run
from train.metrics.rows import Row
from train.runtime.errors import UsageError


def watch(run: Run, *, every: int = 1) -> Iterator[Row]:
    """Iterate a run and draw loss, win rate and games a second in place, in a notebook.

    Outside of a notebook nothing is drawn.

    Args:
      run: that trains.
      every: iterations between two drawings, at least 1; the last one is drawn in any case.

    Returns:
      The rows, as `for row in run` gives them.

    Raises:
      UsageError: `every` is not allowed.
    """
    check_whole("watch", every=every)
    if every < 1:
        raise UsageError(f"watch: every ({every}) must be at least 1")
    return _drawn(run, every)


def _drawn(run: Run, every: int) -> Iterator[Row]:
    handle = None
    for row in run:
        if row["iteration"] % every == 0 or row["iteration"] == run.config.iterations:
            handle = _draw(run, handle)
        yield row


def _draw(run: Run, handle: Any) -> Any:
    """Draw into the cell that runs, over what was drawn before."""
    try:
        from IPython import get_ipython
        from IPython.display import Image, display
    except ImportError:
        return None
    if get_ipython() is None:
        return None
    picture = Image(data=run._repr_png_(), format="png")
    if handle is None:
        return display(picture, display_id=True)
    handle.update(picture)
    return handle
