"""The line that refuses what a user gave."""

from collections.abc import Callable
from typing import Any

import pytest

from train.runtime.errors import UsageError


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """The one line of the `UsageError` that a call ends with."""
    with pytest.raises(UsageError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert message and "\n" not in message
    return message
