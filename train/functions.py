"""Functions that Python passes in place of a part of a run; its config holds them by name."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import pydantic

from train.runtime.errors import UsageError

KEYS = {
    "network": "network.custom",
    "planes": "network.custom_planes",
    "search": "search.custom",
    "loss": "learner.custom_loss",
    "targets": "learner.custom_targets",
}
"""The keys of a config that hold functions, by the names that `train.run` calls them."""


class Function(NamedTuple):
    """A function with the name that checkpoints keep.

    Two are equal where both are the same, so programs compiled for one do not serve another of its
    name.
    """

    name: str
    call: Any  # None where a checkpoint names a function that this process has not been told


_known: dict[tuple[str, str], Function] = {}
"""The newest function of each key and name."""


def tell(key: str, call: Any, *, name: str = "") -> Function:
    """Make a function known, so that configs that name it find it.

    Args:
      key: of the config, a value of KEYS.
      call: what is called.
      name: by default its own.

    Raises:
      ValueError: it has no name that another process could find it by.
    """
    name = name or getattr(call, "__name__", "")
    if not name or name == "<lambda>":
        raise ValueError(f"{key}: a function must have a name: define it with `def`")
    function = Function(name, call)
    _known[key, name] = function
    return function


def call_of(key: str, function: "Function | str") -> Any:
    """What is called for a key's function.

    Raises:
      UsageError: this process has not been told the function of this name.
    """
    if isinstance(function, str) or function.call is None:
        name = function if isinstance(function, str) else function.name
        raise UsageError(
            f"{key}: the run has a function {name!r} of its own, which Python passes: "
            "train.use_functions, docs/api.md"
        )
    return function.call


def check_returned(
    what: str, function: "Function | str", found: Any, shape: tuple[int | None, ...], wanted: str
) -> None:
    """Refuse what a function returned with a UsageError, unless it is an array of a shape, or a
    number where that is ().

    Args:
      what: the function is, of KEYS.
      function: as the config has it.
      found: what it returned.
      shape: None stands for any size.
      wanted: the shape in words.
    """
    its = () if isinstance(found, int | float) else getattr(found, "shape", None)
    if its is None or len(its) != len(shape) or any(map(_differ, its, shape)):
        raise refusal(what, function, found, wanted)


def _differ(size: int, wanted: int | None) -> bool:
    return wanted is not None and size != wanted


def refusal(what: str, function: "Function | str", found: Any, wanted: str) -> UsageError:
    """The error of a function that returned something else than it must; see `check_returned`."""
    return UsageError(f"{what} {_name_of(function)!r}: gave {in_words(found)}, not {wanted}")


def in_words(found: Any) -> str:
    """An array as `float32[4,3]`, else its type; told without JAX, which a config does not load."""
    if not hasattr(found, "shape"):
        return "None" if found is None else f"a {type(found).__name__}"
    return f"{found.dtype}[{','.join(map(str, found.shape))}]"


def refuse_functions(before: Mapping[str, Any], after: Mapping[str, Any], *, where: str) -> None:
    """Refuse tables of a config in which a key of KEYS was changed with a UsageError."""
    for key in KEYS.values():
        table, name = key.split(".")
        inner = [tables.get(table) for tables in (before, after)]
        old, new = (each.get(name) if isinstance(each, dict) else None for each in inner)
        if new and new != old:
            raise UsageError(
                f"{where}: {key}: functions can be passed from Python only, docs/api.md"
            )


def _reader(key: str) -> Callable[[Any], Any]:
    def read(given: Any) -> Any:
        is_name = isinstance(given, str) and given
        return _known.get((key, given), Function(given, None)) if is_name else given

    return read


def _name_of(function: "Function | str") -> str:
    return function.name if isinstance(function, Function) else function


def _field(key: str) -> Any:
    """Validation and serialization of a key."""
    return pydantic.BeforeValidator(_reader(key)), pydantic.PlainSerializer(_name_of)


_Named = pydantic.InstanceOf[Function] | str
CustomNetwork = Annotated[_Named, *_field("network.custom")]
"""The pair (init, evaluate); empty for none, as are the others."""
CustomPlanes = Annotated[_Named, *_field("network.custom_planes")]
CustomSearch = Annotated[_Named, *_field("search.custom")]
CustomLoss = Annotated[_Named, *_field("learner.custom_loss")]
CustomTargets = Annotated[_Named, *_field("learner.custom_targets")]
