"""The command that opens a board to play on (`play`)."""

from __future__ import annotations

import dataclasses
import importlib.util
from typing import Annotated

from pydantic import Field

from train.cli import options
from train.cli.options import File, arg
from train.runtime.errors import UsageError
from wallgo_jax.cli.parsing import Flag

_LIBRARIES = ("aiohttp", "prompt_toolkit")


@dataclasses.dataclass(frozen=True)
class Play:
    """Play against the machine or other people, on a local page or in the terminal."""

    EXAMPLES = (
        "play --rules playwallgo-3p",
        "play --port 9000 --no-browser --puzzles out/puzzles.jsonl",
        "play --terminal --level strong --colour Blue",
    )

    rules: options.RulesText = ""
    """Rules of the first game: preset's name, JSON object, or file (JSON or TOML)."""
    player: Annotated[str, arg("PLAYER", "(default: the rules' own)")] = ""
    """The machine: a player that searches, as docs/players.md names it, without simulations."""
    port: Annotated[int, Field(ge=0, le=65535), options.without("terminal")] = 8642
    """Port at 127.0.0.1; 0 for any that is free."""
    no_browser: Annotated[Flag, options.without("terminal")] = False
    """Print the page's address, but open no browser."""
    terminal: Flag = False
    """Play here in the terminal, without a page."""
    level: Annotated[str, options.only("terminal")] = "novice"
    """With --terminal: level of the machine, or `person` for no machine."""
    puzzles: Annotated[File, options.without("terminal")] = None
    """File of puzzles for the page, in place of those that come with the package."""
    colour: Annotated[str, arg("COLOUR"), options.only("terminal")] = "Red"
    """With --terminal: your colour."""

    def run(self) -> int:
        """Returns the exit code."""
        missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
        if missing:
            raise UsageError(f"play needs {', '.join(missing)}: pip install 'wallgo-jax[play]'")
        from train.api.players import rules_for

        rules = rules_for([self.player] if self.player else [], self.rules)
        if self.player:
            from train.players.registry import check_rules, make_level_player

            check_rules(make_level_player(self.player), rules)
        if self.terminal:
            from train.ui import terminal

            return terminal.run(rules, player=self.player, level=self.level, colour=self.colour)
        from train.puzzles.puzzle_file import read_puzzles, shipped_puzzles
        from train.ui import server

        puzzles = read_puzzles(self.puzzles) if self.puzzles else shipped_puzzles()
        return server.run(
            rules, player=self.player, port=self.port, opens=not self.no_browser, puzzles=puzzles
        )
