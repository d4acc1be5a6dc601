"""The calibration of win chances, in a model's card and in files of `experiment calibrate`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

from train.runtime.errors import UsageError, validation_errors
from train.runtime.files import read_json
from train.search.calibration import Calibration

CARD_KEY = "calibration"
"""Entry of a model's card that holds its calibration."""


def of_card(card: Mapping[str, Any], *, where: str) -> Calibration:
    """The calibration of a model's card; factors of 1 where it has none.

    Raises:
      UsageError: which entry is wrong.
    """
    fields = card.get(CARD_KEY)
    try:
        return Calibration() if fields is None else _ADAPTER.validate_python(fields)
    except pydantic.ValidationError as error:
        raise UsageError(f"{where}: {CARD_KEY}: {validation_errors(error)}") from None


def read_calibration(path: Path) -> Calibration:
    """Read the file that `experiment calibrate --json` wrote.

    Raises:
      UsageError: it cannot be read, or holds no calibration.
    """
    fields = read_json(path)
    if not isinstance(fields, dict) or CARD_KEY not in fields:
        raise UsageError(f"{path}: no {CARD_KEY} of `python -m train experiment calibrate`")
    return of_card(fields, where=str(path))


_ADAPTER = pydantic.TypeAdapter(Calibration)
