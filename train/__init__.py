"""A Gumbel AlphaZero trainer for WallGo that runs end to end on the accelerator.

`train.config` says what a run is, `train.loop` trains it, `train.registry` makes players from names
and `train.arena` lets them meet. `docs/architecture.md` has the map of all folders.

The learner's libraries are an extra of the package. Where they are missing, importing this raises
an ImportError that says what to install; a command says so and leaves with exit code 2.
"""

import importlib.util
import sys
from pathlib import Path

_LIBRARIES = (
    "docstring_parser flax matplotlib mctx optax orbax pydantic scipy tensorboardX tensorstore "
    "tomlkit"
).split()
_USAGE_ERROR = 2


def _require_learner() -> None:
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if not missing:
        return
    message = f"train needs {', '.join(missing)}: pip install 'wallgo-jax[train]'"
    # `-m` is what stands there while Python looks for the module of `python -m train`.
    if Path(sys.argv[0]).stem in ("-m", "wallgo-train"):
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(_USAGE_ERROR)
    raise ImportError(message)


_require_learner()
