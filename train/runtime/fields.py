"""Types of options that tables of options check by themselves, and numbers that are arguments."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
"""Unknown keys, NaN and infinities are errors."""
MAX_WHOLE = 2**31 - 1
"""The largest whole number: axes of arrays and steps are counted in 32 bits."""
_SMALLEST, _LARGEST = 2.0**-126, (2 - 2.0**-23) * 2.0**127
"""Sizes of float32 numbers; XLA makes zeros of what is smaller."""
_BELOW_ONE = 1 - 2.0**-24
"""The float32 number before 1."""


def _refuse_bool(number: Any) -> Any:
    if isinstance(number, bool):
        raise PydanticCustomError("bool", "Input should be a number, not true or false")
    return number


def _check_float32(number: float) -> float:
    if number and not _SMALLEST <= abs(number) <= _LARGEST:
        raise PydanticCustomError(
            "float32",
            "Input should be 0 or from {smallest} to {largest} in size, as float32 is",
            {"smallest": f"{_SMALLEST:.3g}", "largest": f"{_LARGEST:.3g}"},
        )
    return number


Whole = Annotated[int, Field(ge=-MAX_WHOLE, le=MAX_WHOLE), BeforeValidator(_refuse_bool)]
Real = Annotated[float, BeforeValidator(_refuse_bool), AfterValidator(_check_float32)]
Count = Annotated[Whole, Field(ge=0)]
AtLeastOne = Annotated[Whole, Field(ge=1)]
Seed = Count
Share = Annotated[Real, Field(ge=0, le=1)]
BelowOne = Annotated[Real, Field(ge=0, le=_BELOW_ONE)]
NotNegative = Annotated[Real, Field(ge=0)]
Positive = Annotated[Real, Field(gt=0)]


def is_off(number: Any, off: float = 0) -> bool:
    """Whether a number of a config, or of a program that is traced, is the constant that switches
    something off."""
    return isinstance(number, int | float) and number == off
