"""Commands made from verbs: what a shell needs besides a function's arguments, once for all."""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from train.api.signatures import SHOWN, options_of
from train.api.verbs import VERBS
from train.cli import options
from train.runtime.results import Result
from train.runtime.showing import sparing


class Command:
    """A command that calls a verb with its options, and shows what comes back."""

    verb: ClassVar[Callable[..., Any]]
    json: Path | None = None
    plot: Path | None = None

    def run(self) -> int:
        """Returns the exit code."""
        return self.finish(self.call())

    def call(self, **changes: Any) -> Any:
        """Call the verb with the command's options, some of them changed; what is None goes by the
        verb's default."""
        from train.runtime.display import Display

        parameters = inspect.signature(self.verb).parameters
        named = {name: getattr(self, name) for name in parameters if hasattr(self, name)} | changes
        named = {name: value for name, value in named.items() if value is not None}
        if SHOWN in parameters:
            named[SHOWN] = Display()
        places: list[Any] = []
        for name, parameter in parameters.items():
            if parameter.kind == parameter.VAR_POSITIONAL:
                places += named.pop(name)
            elif parameter.kind == parameter.POSITIONAL_OR_KEYWORD and name in named:
                places.append(named.pop(name))
        return self.verb(*places, **named)

    def finish(self, result: Any) -> int:
        """Show a result and write its files; returns the exit code."""
        if not isinstance(result, Result):
            return result if isinstance(result, int) else 0
        from train.runtime.display import Display

        console = Display().console
        for shown in result.shown():
            console.print(shown, highlight=False)
        for path, what in dict(result.written).items():
            options.say_written(path, what)
        if self.plot is not None:
            from train.metrics.figure import save_figure

            figure: Any = result
            with sparing(self.plot, "the figures stand"):
                save_figure(self.figure_of(figure), self.plot, caption=figure.caption)
            options.say_written(self.plot, "picture")
        options.write_json(self.json, result.summary())
        if result.failure is not None:
            raise result.failure
        return options.exit_code(result.is_interrupted, result.on_stop) or int(not result.is_passed)

    def figure_of(self, result: Any) -> Any:
        """The picture of a result."""
        return result.figure()


def command_of(word: str) -> Any:
    """The command of a word, a dataclass with tyro's annotations."""
    found = pkgutil.resolve_name(VERBS[word].place)
    return found if isinstance(found, type) else made_from(found, word)


def made_from(call: Callable[..., Any], word: str) -> Any:
    """A command that has the options of a verb; commands that do more are derived from it."""
    verb = VERBS[word]
    extra: list[Any] = [("json", options.Json, None)] if verb.has_json else []
    if verb.has_plot:
        extra.append(("plot", options.Plot, None))
    base = options_of(call)
    made = dataclasses.make_dataclass(
        word,
        extra,
        bases=(base, Command),
        namespace={"verb": staticmethod(call)},
        frozen=True,
        kw_only=True,
    )
    made.__doc__ = base.__doc__
    return made
