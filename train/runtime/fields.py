"""Types of options, which tables of options check."""

from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
)
from pydantic_core import PydanticCustomError

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, revalidate_instances="always")
"""Unknown keys, NaN and infinities are errors; a table that stands in another is checked again."""
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
        sizes = {"least": f"{_SMALLEST:.3g}", "most": f"{_LARGEST:.3g}"}
        raise PydanticCustomError(
            "float32", "Input should be 0 or from {least} to {most} in size, as float32 is", sizes
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


def unless(off: float) -> tuple[Any, ...]:
    """Annotations of a number that switches something off where it has one value.

    In a table it is None there, so that a program is made without it; files, command lines and
    whatever is printed have the number.
    """

    def read(given: Any) -> Any:
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        return None if is_number and given == off else given

    return BeforeValidator(read), PlainSerializer(lambda held: off if held is None else held)


ShareOrOff = Annotated[Share | None, *unless(0.0)]
BelowOneOrOff = Annotated[BelowOne | None, *unless(0.0)]
NotNegativeOrOff = Annotated[NotNegative | None, *unless(0.0)]

Table = TypeVar("Table")


def check(table: Table) -> Table:
    """A table of options as it is read from a file; constructors of tables check nothing.

    Raises:
      ValueError: a value, or what two of them say together, is not allowed.
    """
    return TypeAdapter(type(table)).validate_python(table)
