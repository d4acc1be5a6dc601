"""Playing at a board: tables, machine opponents, the local web page, the terminal game, the widget.

The package can be called: `train.play()` is `train.play.notebook.play`, whatever was imported.
"""

import sys
import types
from typing import Any


class _Playing(types.ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from train.play.notebook import play

        return play(*arguments, **options)


# Python sets `train.play` to this package as soon as one of its modules is imported.
sys.modules[__name__].__class__ = _Playing
