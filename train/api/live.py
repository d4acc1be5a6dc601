"""A run's curves in a notebook, drawn in place while it trains."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from train.api.checks import check_whole
from train.metrics.figure import metrics_figure
from train.metrics.rows import Row
from train.runtime.errors import UsageError

if TYPE_CHECKING:
    from train.api.runs import Run


def watch(run: "Run", *, every: int = 1) -> Iterator[Row]:
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


def _drawn(run: "Run", every: int) -> Iterator[Row]:
    handle = None
    for row in run:
        if row["iteration"] % every == 0 or row["iteration"] == run.config.iterations:
            handle = _draw(run, handle)
        yield row


def png_of(run: "Run") -> bytes:
    """The curves of a run as a picture."""
    buffer = io.BytesIO()
    metrics_figure({run.config.name: run.rows}).savefig(buffer, format="png", dpi=100)
    return buffer.getvalue()


def _draw(run: "Run", handle: Any) -> Any:
    """Draw into the cell that runs, over what was drawn before."""
    try:
        from IPython import get_ipython
        from IPython.display import Image, display
    except ImportError:
        return None
    if get_ipython() is None:
        return None
    picture = Image(data=png_of(run), format="png")
    if handle is None:
        return display(picture, display_id=True)
    handle.update(picture)
    return handle
