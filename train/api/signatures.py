"""Verbs: functions whose signatures say all that Python, the command line and its pages need.

An argument's type checks it, its line in the docstring is its help. `import train` exports the
functions as they are, and the command line is made from them (`train.cli.commands`).
"""

import ast
import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, ParamSpec, TypeVar

import docstring_parser
import pydantic
import tyro

from train.runtime.errors import UsageError, usage_errors, validation_errors
from wallgo_jax.formats.docstrings import docstring_of
from wallgo_jax.formats.option_names import argument

Options = ParamSpec("Options")
Returned = TypeVar("Returned")
Table = TypeVar("Table")
OPTION = "option"
"""Beside the type of an argument that Python may give by its place, and a shell by its name."""
SHOWN = "progress"
"""The argument that no shell has: there something is always shown."""
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def verb(call: Callable[Options, Returned]) -> Callable[Options, Returned]:
    """A function whose keyword arguments are checked by its signature where they enter.

    What a host callback raises inside a JAX program comes out as the UsageError that it is.

    Raises:
      UsageError: when called, in pydantic's words, an argument is unknown or is not allowed.
    """

    signature = inspect.signature(call)
    places = [
        name
        for name, each in signature.parameters.items()
        if each.kind == each.POSITIONAL_OR_KEYWORD
    ]

    @functools.wraps(call)
    def enter(*given: Options.args, **options: Options.kwargs) -> Returned:
        from train.runtime.host import callback_errors

        named = dict(zip(places, given, strict=False)) | options
        record = _checked_by(call, named)
        values = {name: getattr(record, name) for name in named}
        first = [values.pop(name) for name in places[: len(given)]]
        with callback_errors():
            return call(*first, *given[len(places) :], **values)  # type: ignore[arg-type]

    # `help` shows this one: what only a shell and a check need would hide the types.
    plain = [each.replace(annotation=_plain(each)) for each in signature.parameters.values()]
    enter.__signature__ = signature.replace(parameters=plain)  # type: ignore[attr-defined]
    return enter


def _plain(parameter: inspect.Parameter) -> Any:
    """The type of a parameter as it is written, without what stands beside it."""
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    return ast.unparse(_WithoutNotes().visit(ast.parse(parameter.annotation, mode="eval")))


class _WithoutNotes(ast.NodeTransformer):
    """Turns `Annotated[X, ...]` into `X`."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """The first part of an `Annotated`, and other types as they are."""
        self.generic_visit(node)
        is_noted = isinstance(node.value, ast.Name) and node.value.id == "Annotated"
        return node.slice.elts[0] if is_noted and isinstance(node.slice, ast.Tuple) else node


class Rule(NamedTuple):
    """Beside the type of an argument: it has no effect with, or without, any of some others."""

    is_with: bool
    others: tuple[str, ...]


def only(*others: str) -> Rule:
    """The argument has no effect without one of some others, such as `late` or `what=search`."""
    return Rule(False, others)


def without(*others: str) -> Rule:
    """The argument has no effect with any of some others."""
    return Rule(True, others)


def check_effects(
    values: Mapping[str, Any],
    defaults: Mapping[str, Any],
    kinds: Mapping[str, Any],
    spelled: Callable[[str], str],
) -> None:
    """Refuse an argument that has no effect as the others are with a UsageError.

    Args:
      values: by name.
      defaults: by name.
      kinds: the types by name, beside which the rules stand.
      spelled: how messages name an argument, such as `late` or `what=search`.
    """

    def is_given(other: str) -> bool:
        name, has_value, value = other.partition("=")
        if has_value:
            return value in names_in(values[name])
        return values[name] != defaults[name]

    for name, kind in kinds.items():
        rules = [each for each in getattr(kind, "__metadata__", ()) if isinstance(each, Rule)]
        for rule in rules if values[name] != defaults[name] else ():
            given = [other for other in rule.others if is_given(other)]
            if bool(given) == rule.is_with:
                others = " or ".join(map(spelled, given or rule.others))
                how = "with" if given else "without"
                raise UsageError(f"{spelled(name)} has no effect {how} {others}; leave it out")


def names_in(text: str) -> tuple[str, ...]:
    """The names of an argument, with commas between."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _checked_by(call: Callable[..., Any], named: Mapping[str, Any]) -> Any:
    """The arguments of a verb by its signature.

    Raises:
      UsageError: which is unknown, not allowed or without effect; the names of options are marked,
        so that a command line spells them as its own.
    """
    parameters = inspect.signature(call).parameters

    def spelled(key: str) -> str:
        is_option = key in parameters and parameters[key].kind == inspect.Parameter.KEYWORD_ONLY
        return argument(key) if is_option else key

    try:
        found = _adapter_of(arguments_of(call)).validate_python(dict(named))
    except pydantic.ValidationError as error:
        raise UsageError(f"{call.__name__}: {validation_errors(error, spelled)}") from None
    defaults = {name: each.default for name, each in parameters.items()}
    values = defaults | {name: getattr(found, name) for name in named}
    with usage_errors(call.__name__):
        check_effects(values, defaults, kinds_of(call), spelled)
    return found


def words_of(call: Callable[..., Any], options: Mapping[str, Any]) -> list[str]:
    """Options of a verb as words of its command, those by default left out."""
    words: list[str] = []
    for name, value in options.items():
        if value != inspect.signature(call).parameters[name].default:
            several = value if isinstance(value, tuple) else () if value is True else (value,)
            words += [f"--{name.replace('_', '-')}", *map(str, several)]
    return words


@functools.cache
def arguments_of(call: Callable[..., Any]) -> type:
    """The arguments of a verb as a record that checks them, all of which may be missing: Python
    itself tells which may not."""
    made = [
        (name, kind, dataclasses.field(default=None))
        for name, kind in kinds_of(call).items()
        if inspect.signature(call).parameters[name].kind in _NAMED
    ]
    return dataclasses.make_dataclass(call.__name__, made, frozen=True)


@functools.cache
def options_of(call: Callable[..., Any]) -> type:
    """The arguments of a verb as a dataclass for tyro, with its help.

    What Python may give by its place, a shell reads by its place, too, unless `OPTION` stands
    beside its type.
    """
    call = inspect.unwrap(call)
    kinds = kinds_of(call)
    said = docstring_parser.parse(docstring_of(call))
    helps = {each.arg_name: each.description or "" for each in said.params}
    fields: list[Any] = []
    for name, parameter in inspect.signature(call).parameters.items():
        if name == SHOWN or parameter.kind == parameter.VAR_KEYWORD:
            continue
        kind = kinds[name]
        default = parameter.default
        if parameter.kind == parameter.VAR_POSITIONAL:
            kind = several(kind)
            default = ()
        if parameter.kind != parameter.KEYWORD_ONLY and OPTION not in kind.__metadata__:
            kind = tyro.conf.Positional[kind]
        how: dict[str, Any] = {} if default is parameter.empty else {"default": default}
        field = dataclasses.field(metadata={"help": _sentence(helps.get(name, ""))}, **how)
        fields.append((name, kind, field))
    made = dataclasses.make_dataclass(call.__name__, fields, frozen=True, kw_only=True)
    gap = "\n\n" if said.blank_after_short_description else " "
    texts = (said.short_description, said.long_description)
    made.__doc__ = gap.join(text for text in texts if text)
    return made


def kinds_of(call: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's arguments, with what stands beside them; not that of its result,
    which would load JAX."""
    written = {name: kind for name, kind in call.__annotations__.items() if name != "return"}
    holder = types.SimpleNamespace(__annotations__=written)
    known = vars(inspect.getmodule(call))
    kinds = typing.get_type_hints(holder, globalns=known, include_extras=True)
    return {name: _lifted(kind) for name, kind in kinds.items()}


def _lifted(kind: Any) -> Any:
    """`Annotated[X, ...] | None` as `Annotated[X | None, ...]`, where tyro looks."""
    if hasattr(kind, "__metadata__"):
        return Annotated[(_lifted(kind.__origin__), *kind.__metadata__)]  # type: ignore[return-value]
    parts = typing.get_args(kind)
    inner = next((part for part in parts if hasattr(part, "__metadata__")), None)
    if type(None) not in parts or len(parts) != 2 or inner is None:
        return kind
    return Annotated[(inner.__origin__ | None, *inner.__metadata__)]  # type: ignore[return-value]


def several(kind: Any) -> Any:
    """The type of several values, with what stands beside one's type."""
    if not hasattr(kind, "__metadata__"):
        return tuple[kind, ...]
    return Annotated[(tuple[kind.__origin__, ...], *kind.__metadata__)]  # type: ignore[return-value]


def _sentence(text: str) -> str:
    """A text on one line, which a help page wraps, with a capital."""
    words = " ".join(text.split())
    return words[:1].upper() + words[1:]


def checked(record: type[Table], given: Mapping[str, Any]) -> Table:
    """The keyword arguments of a call as a record.

    Raises:
      UsageError: in pydantic's words, an argument is unknown or has a value that is not allowed.
    """
    with usage_errors():
        return _adapter_of(record).validate_python(given)


def _adapter_of(record: type[Table]) -> pydantic.TypeAdapter[Table]:
    config = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    return pydantic.TypeAdapter(pydantic.with_config(config)(record))


def valid(kind: Any, **named: Any) -> Any:
    """A value with its name, which pydantic reads as a type of the `train.api.arguments`.

    Raises:
      UsageError: in pydantic's words, it is not allowed.
    """
    (name,) = named
    record = dataclasses.make_dataclass("Argument", [(name, kind)])
    return getattr(checked(record, named), name)
