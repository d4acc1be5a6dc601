"""The tables of config keys in docs/training.md, as the docstrings of the config give them.

`python -m tests.support.config_page` writes them into the page.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from train.config import RunConfig
from train.config.keys import Key, keys_of
from train.config.toml_text import in_toml

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
MARK, END = "<!-- config table", "## Replay memory"
HEAD = "| key | meaning | unit | default |\n|---|---|---|---|\n"
KINDS = {bool: "true, false", str: "text"}


def rows(keys: Sequence[Key]) -> str:
    return "".join(
        f"| `{key.path}` | {key.meaning} | {key.unit or KINDS[type(key.default)]} | "
        f"`{in_toml(key.default)}` |\n"
        for key in keys
    )


def heuristic_keys(keys: Sequence[Key]) -> Iterator[Key]:
    """The keys of both heuristics in one; they differ by the formula alone."""
    own = [key for key in keys if key.table == "heuristics.wjx"]
    other = [key for key in keys if key.table == "heuristics.ethen"]
    for one, two in zip(own, other, strict=True):
        is_same = one._replace(table="") == two._replace(table="")
        assert is_same or (one.default, two.default) == ("wjx", "ethen")
        default = one.default if is_same else "NAME"
        yield one._replace(table="heuristics.NAME", default=default)


def tables() -> list[str]:
    """The table of all keys, and that of the heuristics."""
    keys = keys_of(RunConfig())
    run = [key for key in keys if not key.table.startswith("heuristics")]
    return [HEAD + rows(run), HEAD + rows([*heuristic_keys(keys)])]


def printed() -> list[str]:
    """The tables as the page has them."""
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index(MARK) : text.index(END)]
    parts = section.split("| key |")[1:]
    return ["| key |" + part[: part.index("|\n\n") + 2] for part in parts]


def main() -> None:
    """Write the tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    for old, new in zip(printed(), tables(), strict=True):
        text = text.replace(old, new)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
