"""A run: what its functions read of a config, the functions, and the loop that calls them.

Names are imported when they are first used. With those below the loop can be written out, as the
notebook *Write the loop yourself* does; `iterations` is the loop of `train run`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.loop.iteration_row import learning_row as learning_row
    from train.loop.iteration_row import selfplay_row as selfplay_row
    from train.loop.iteration_row import steps_due as steps_due
    from train.loop.programs import TrainState as TrainState
    from train.loop.programs import init as init
    from train.loop.programs import iteration_keys as iteration_keys
    from train.loop.programs import learn as learn
    from train.loop.programs import play as play
    from train.loop.programs import reanalyse as reanalyse
    from train.loop.programs import validate as validate
    from train.loop.programs import write as write
    from train.loop.stages import simulations_of as simulations_of
    from train.loop.tables import tables_of as tables_of
    from train.loop.tables import variants_of as variants_of

_NAMES = {
    "iteration_row": ("learning_row", "selfplay_row", "steps_due"),
    "programs": (
        *("TrainState", "init", "iteration_keys", "play", "write", "reanalyse", "learn"),
        "validate",
    ),
    "stages": ("simulations_of",),
    "tables": ("tables_of", "variants_of"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
