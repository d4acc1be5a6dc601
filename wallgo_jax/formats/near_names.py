"""The known names that a wrong one is nearest to."""

import difflib
from collections.abc import Iterable

_LEAST = 0.6  # of difflib's ratio, which is 1 for equal texts
_MOST = 3


def did_you_mean(word: str, known: Iterable[str], *, prefix: str = "") -> str:
    """` (did you mean NAME?)`, to put behind a wrong name; empty where no known name is near.

    Of names such as `learner.learning_rate` the last part counts alone as well, and so do its
    initials: `learning_rate`, `network.learning_rate` and `lr` are all near to that. Of several
    equally near ones those of the table that the wrong name has, or is near to, are meant, else the
    first three.

    Args:
      word: the wrong name.
      known: the names to choose from, in the order of the answer.
      prefix: stands before each name of the answer, such as `--`.
    """
    near = {name: _nearness(word, name) for name in known}
    nearest = max(near.values(), default=0.0)
    if nearest < _LEAST:
        return ""
    names = [name for name, ratio in near.items() if ratio == nearest]
    meant = difflib.get_close_matches(_split(word)[0], [_split(name)[0] for name in names], n=1)
    own = [name for name in names if _split(name)[0] in meant]
    return f" (did you mean {' or '.join(prefix + name for name in (own or names)[:_MOST])}?)"


def _nearness(word: str, name: str) -> float:
    table, wrong = _split(word)
    _, last = _split(name)
    initials = "".join(part[:1] for part in last.split("_"))
    if len(wrong) > 1 and wrong == initials:
        return 1.0
    whole = _ratio(word, name) if table else 0.0
    return max(_ratio(wrong, last), whole)


def _split(name: str) -> tuple[str, str]:
    """The table of a dotted name, empty for none, and its last part."""
    table, _, last = name.rpartition(".")
    return table, last


def _ratio(word: str, name: str) -> float:
    return difflib.SequenceMatcher(None, name, word).ratio()
