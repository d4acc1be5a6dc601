"""The errors that the command line shows as a line instead of a traceback, and checks that several
doors share."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pydantic

    from wallgo_jax.game.rules import Rules

_T = TypeVar("_T")


class UsageError(ValueError):
    """An error that the user can fix: one line says what is wrong, where, and what is allowed."""


class NotFiniteError(UsageError):
    """A loss or a gradient is NaN or infinite."""


class ProcessLostError(RuntimeError):
    """Another process of a distributed run has ended; the message is one line."""


def validation_errors(
    error: "pydantic.ValidationError", spelled: Callable[[str], str] = str
) -> str:
    """pydantic's messages on one line, each behind the key that it is about, as `spelled` writes
    it."""
    lines = []
    for each in error.errors(include_url=False):
        key = spelled(".".join(map(str, each["loc"]))) if each["loc"] else ""
        given = "" if each["type"] == "value_error" else f" (got {_shown(each['input'])})"
        lines.append(f"{key}: {each['msg']}{given}" if key else f"{each['msg']}{given}")
    return one_line("; ".join(lines))


def _shown(value: Any) -> str:
    try:
        return repr(value)[:80]
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return f"a {type(value).__name__} too long to write"


def message_of(error: Exception) -> str:
    """The message of a check on one line, also where it is one of pydantic's."""
    import pydantic

    is_pydantic = isinstance(error, pydantic.ValidationError)
    return validation_errors(error) if is_pydantic else one_line(error)


def require(use: str, extra: str, *libraries: str) -> None:
    """Refuse a use of libraries that are missing with a UsageError that says what to install."""
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"{use} needs {', '.join(missing)}: pip install 'wallgo-jax[{extra}]'")


def distinct(values: tuple[_T, ...]) -> tuple[_T, ...]:
    """The values, or the records by their names; a ValueError if one stands there twice."""
    names = [getattr(value, "name", value) for value in values]
    if len({*names}) < len(names):
        raise ValueError("each must be named once")
    return values


def check_two_players(rules: "Rules", what: str) -> None:
    """Refuse rules for more than two players with a UsageError that begins with what asks for
    two."""
    if rules.players != 2:
        raise UsageError(f"{what}: must be for two players, not {rules.players} players")


def one_line(text: object) -> str:
    """A text or an error on one line."""
    return " ".join(str(text).split())


@contextlib.contextmanager
def usage_errors(where: str = "") -> Iterator[None]:
    """Turn the ValueErrors of the package's own checks, and its ImportErrors that say what to
    install, into UsageErrors of the same line, behind the place that they are about, unless they
    open with it."""
    try:
        yield
    except (ValueError, ImportError) as error:
        if isinstance(error, ImportError) and error.name is not None:
            raise  # Python's own
        if isinstance(error, UsageError) and not where:
            raise
        start = f"{where}: " if where else ""
        raise UsageError(start + message_of(error).removeprefix(start)) from None
