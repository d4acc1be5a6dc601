"""The command that shows what a config says (`config`)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from train.cli.options import Positional, arg, without
from train.config import CONFIG_FILE, change_config, read_config, read_saved_config
from train.runtime.errors import UsageError
from wallgo_jax.cli.parsing import Flag

if TYPE_CHECKING:
    from rich.table import Table

    from train.config.keys import Key


_MAX_WIDTH = 110


@dataclasses.dataclass(frozen=True)
class Config:
    """Print every key of a config: value, default, unit and meaning. Any key can be changed:
    --some.key value."""

    EXAMPLES = (
        "config configs/cpu.toml --learner.steps 64",
        "config --only search",
        "config runs/quickstart --toml",
    )

    config: Annotated[Positional[Path | None], arg("[CONFIG|RUN]", "")] = None
    """TOML file or run directory; without one, the quickstart."""
    toml: Flag = False
    """Print a TOML file that `run` reads back, with the meanings as comments."""
    only: Annotated[str, arg("TABLE", ""), without("toml")] = ""
    """Table or key to print alone, in full, such as search or learner.batch."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        if self.config is not None and (self.config / CONFIG_FILE).is_file():
            config = change_config(read_saved_config(self.config), overrides)
        else:
            config = read_config(self.config, overrides)
        if self.toml:
            from train.config.keys import config_to_toml

            opening = "The config of a run: `python -m train run FILE` trains it."
            print(config_to_toml(config, opening=opening))
            return 0
        from rich.console import Console
        from rich.text import Text

        from train.config.keys import keys_of

        only = self.only.replace("-", "_")
        keys = keys_of(config)
        shown = [key for key in keys if f"{key.path}.".startswith(f"{only}." if only else "")]
        if not shown:
            tables = ", ".join(dict.fromkeys(key.path.partition(".")[0] for key in keys))
            raise UsageError(f"config: --only {self.only}: no such key or table: {tables}")
        console = Console(highlight=False)
        console.print(_table(shown, width=min(console.width, _MAX_WIDTH), is_full=bool(only)))
        if any(key.is_changed for key in shown):
            console.print(Text("* differs from its default, which stands below it"))
        return 0


def _table(keys: Sequence[Key], *, width: int, is_full: bool) -> Table:
    """A row a key, under the names of their tables; what differs from its default is marked."""
    from rich.table import Table
    from rich.text import Text

    from train.config.keys import in_toml

    table = Table(box=None, pad_edge=False, width=width, show_header=False)
    table.add_column(width=max(24, 2 + max(len(key.name) for key in keys)), no_wrap=True)
    table.add_column(width=17, overflow="fold")
    table.add_column()
    for name, group in itertools.groupby(keys, key=lambda key: key.table):
        if name:
            if table.row_count:
                table.add_row()
            table.add_row(Text(f"[{name}]", style="bold"))
        for key in group:
            mark, style = ("* ", "bold") if key.is_changed else ("  ", "")
            value = Text(in_toml(key.value), style=style)
            if key.is_changed:
                value.append(f"\n({in_toml(key.default)})", style="not bold")
            unit = f" [{key.unit}]" if key.unit else ""
            more = f". {key.more}" if is_full and key.more else ""
            table.add_row(
                Text(mark + key.name, style=style), value, Text(key.meaning + unit + more)
            )
    return table
