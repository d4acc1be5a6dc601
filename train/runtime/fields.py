"""Types of options that tables of options check by themselves, and numbers that are arguments."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
"""Unknown keys, NaN and infinities are errors."""
MAX_WHOLE = 2**31 - 1
"""The largest whole number: axes of arrays and steps are counted in 32 bits."""
Count = Annotated[int, Field(ge=0, le=MAX_WHOLE)]
AtLeastOne = Annotated[int, Field(ge=1, le=MAX_WHOLE)]
Seed = Count
Share = Annotated[float, Field(ge=0, le=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


def is_off(number: Any, off: float = 0) -> bool:
    """Whether a number of a config, or of a program that is traced, is the constant that switches
    something off."""
    return isinstance(number, int | float) and number == off
