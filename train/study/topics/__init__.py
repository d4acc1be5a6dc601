"""The topics of `study`: each measures one of the papers' results on our own players."""

from collections.abc import Callable, Mapping

from train.study.frame.report import Report
from train.study.frame.work import Work
from train.study.topics import (
    balance,
    corridors,
    footing,
    game_size,
    mobility,
    padding,
)
from train.study.trainings import adversary, blocks, features, mixed, transfer

TOPICS: Mapping[str, Callable[[Work], Report]] = {
    "features": features.report,
    "blocks": blocks.report,
    "size": game_size.report,
    "balance": balance.report,
    "mobility": mobility.report,
    "footing": footing.report,
    "transfer": transfer.report,
    "padding": padding.report,
    "corridors": corridors.report,
    "adversary": adversary.report,
    "mixed": mixed.report,
}
"""By the names that users type."""
