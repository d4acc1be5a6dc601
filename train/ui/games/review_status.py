"""How far the review of a table's game is."""

from __future__ import annotations

from typing import Any, NamedTuple


class ReviewStatus(NamedTuple):
    """The state of a review, as a page is told it.

    Attributes:
      tip: number of the last position of the line that is reviewed.
      share: of the search that is done, 0 to 1.
      name: of the finished review on the server, or empty.
      accuracy: of each player in per cent, None where a player made no move; empty until it is
        finished.
      error: why there is no review, or empty.
    """

    tip: int
    share: float = 0.0
    name: str = ""
    accuracy: tuple[float | None, ...] = ()
    error: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it is neither finished nor failed."""
        return not self.name and not self.error

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready fields."""
        accuracy = [None if each is None else round(each) for each in self.accuracy]
        return self._asdict() | {"share": round(self.share, 3), "accuracy": accuracy}
