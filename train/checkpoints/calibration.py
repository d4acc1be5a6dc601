"""The calibration of win chances in a model's card and in the files of `calibrate --json`."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from train.runtime.errors import UsageError
from train.search.calibration import Calibration

CARD_KEY = "calibration"
"""Entry of a model's card that holds its calibration."""


def from_dict(fields: Any, *, where: str) -> Calibration:
    """Read a calibration from JSON.

    Raises:
      UsageError: which entry is wrong.
    """
    if not isinstance(fields, Mapping):
        raise UsageError(f"{where}: no calibration of `python -m train calibrate`")
    for key in ("network", "search"):
        number = fields.get(key)
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if not is_number or not 0 < float(number or 0) < math.inf:
            raise UsageError(f"{where}: calibration: {key} {number!r} is not a number above 0")
    simulations = fields.get("simulations")
    if simulations is not None and not isinstance(simulations, int):
        raise UsageError(f"{where}: calibration: simulations {simulations!r} is no whole number")
    return Calibration(float(fields["network"]), float(fields["search"]), simulations)


def of_card(card: Mapping[str, Any], *, where: str) -> Calibration:
    """The calibration of a model's card; factors of 1 where it has none.

    Raises:
      UsageError: which entry is wrong.
    """
    found = card.get(CARD_KEY)
    return Calibration() if found is None else from_dict(found, where=where)


def read_calibration(path: Path) -> Calibration:
    """Read the file that `calibrate --json` wrote.

    Raises:
      UsageError: it cannot be read, or holds no calibration.
    """
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: no JSON") from None
    return from_dict(fields.get(CARD_KEY) if isinstance(fields, dict) else None, where=str(path))
