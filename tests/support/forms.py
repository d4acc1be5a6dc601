"""Runs on the tests' CPU what functions do on a TPU, where they have a form of its own for it."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import pytest

_form = jax.make_user_context("")
"""Part of the key of every jitted function: no trace of one form is used for the other."""


@contextlib.contextmanager
def of_a_tpu() -> Iterator[None]:
    """Trace functions as they are for a TPU."""

    def choose(*args: Any, default: Callable[..., Any], **forms: Callable[..., Any]) -> Any:
        return forms.get("tpu", default)(*args)

    with pytest.MonkeyPatch.context() as patch, _form("tpu"):
        patch.setattr(jax.lax, "platform_dependent", choose)
        yield


FORMS: Mapping[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "cpu": contextlib.nullcontext,
    "tpu": of_a_tpu,
}
"""By platform."""
