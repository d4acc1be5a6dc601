"""The commands `show`, `replay` and `convert`."""

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.live import Live
from rich.text import Text

from wallgo_jax import render
from wallgo_jax.cli.sources import LoadedGame, SourceRequest, read_games, read_position
from wallgo_jax.formats import diagram, hkoi_code, records
from wallgo_jax.game.rules import PRESETS, name_of
from wallgo_jax.game.state import State
from wallgo_jax.notation import LETTERS
from wallgo_jax.view.game_replay import Game

Source = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
Theme = Literal["light", "dark"]


@dataclasses.dataclass(frozen=True)
class Show:
    """Show one position, as text or as a picture."""

    source: Source
    """A preset, a diagram or game file, `-` for standard input, or the moves themselves."""
    rules: str = ""
    """Preset, or JSON file of custom rules, that moves are played by."""
    ply: int = -1
    """Plies of the game to play; -1 for all."""
    game: int = 1
    """Which game of a record file, from 1."""
    grid: int = 0
    """Side length of a larger grid that numbers the cells; 0 for the board's own."""
    diagram: bool = False
    """Print a diagram, which can be read back, in place of the picture."""
    out: str = ""
    """Write to this file: .svg, .png, .html or .txt (a diagram)."""
    theme: Theme = "light"
    """Colours of pictures."""
    reach: Literal["", "R", "B", "G", "Y"] = ""
    """Mark in pictures the cells that this player can reach."""

    def run(self, console: Console) -> None:
        """Print or write the position."""
        state = read_position(
            SourceRequest(self.source, self.rules, self.grid, self.game), ply=self.ply
        )
        if not self.out:
            shown = diagram.draw(state) if self.diagram else _text(state, console)
            print(shown.rstrip("\n"))
            return
        reach = LETTERS.index(self.reach) if self.reach else None

        def svg() -> str:
            return render.svg(state, theme=self.theme, reach=reach)

        makers: dict[str, Callable[[], str | bytes]] = {
            ".svg": svg,
            ".png": lambda: render.png(svg()),
            ".html": svg,
            ".txt": lambda: diagram.draw(state),
        }
        _write(self.out, makers)


@dataclasses.dataclass(frozen=True)
class Replay:
    """Replay a game, as text or as an animation."""

    source: Source
    """A record file, a file of moves or of an HKOI code, `-`, or the game itself."""
    rules: str = ""
    """Preset, or JSON file of custom rules, that moves are played by."""
    game: int = 1
    """Which game of a record file, from 1."""
    grid: int = 0
    """Side length of a larger grid that numbers the cells; 0 for the board's own."""
    steps: bool = False
    """Print the position after every ply, not only the last."""
    watch: bool = False
    """Play the game in the terminal, `--seconds` a ply."""
    seconds: float = 0.9
    """Time for one ply."""
    out: str = ""
    """Write to this file: .svg (animated), .gif, .html (stepped with the arrow keys) or .txt."""
    theme: Theme = "light"
    """Colours of pictures."""

    def run(self, console: Console) -> None:
        """Print, play or write the game."""
        played = next(
            read_games(SourceRequest(self.source, self.rules, self.grid, max(self.game, 1)))
        )
        if self.out:
            self._write(played)
        elif self.watch:
            _watch(played.game, console, self.seconds)
        elif self.steps:
            print("\n\n".join(_text(state, console) for state in played.game.states))
        else:
            print(render.played_text(played.game, color=_has_colour(console)))

    def _write(self, played: LoadedGame) -> None:
        game, players = played.game, played.record.players if played.record else None
        makers: dict[str, Callable[[], str | bytes]] = {
            ".svg": lambda: render.animation(game, theme=self.theme, seconds=self.seconds),
            ".gif": lambda: render.gif(game, theme=self.theme, seconds=self.seconds),
            ".html": lambda: render.page(
                game, theme=self.theme, seconds=self.seconds, players=players
            ),
            ".txt": lambda: render.played_text(game) + "\n",
        }
        _write(self.out, makers)


@dataclasses.dataclass(frozen=True)
class Convert:
    """Convert games between record files, human notation and HKOI replay codes."""

    source: Source
    """A record file, a file of moves or of an HKOI code, `-`, or the game itself."""
    to: Literal["record", "moves", "hkoi"]
    """What to write: one game a line as a record or a code, or moves as a person writes them."""
    rules: str = ""
    """Preset, or JSON file of custom rules, that moves are played by."""
    game: int = 0
    """Which game of a record file, from 1; 0 for all."""
    grid: int = 0
    """Side length of a larger grid that numbers the cells; 0 for the board's own."""
    out: str = ""
    """Write to this file; else to standard output."""

    def run(self, console: Console) -> None:
        """Print or write the games."""
        del console
        games = read_games(SourceRequest(self.source, self.rules, self.grid, self.game))
        makers = {"record": _record_line, "moves": _moves, "hkoi": _code}
        text = ""
        for number, played in enumerate(games, start=self.game or 1):
            try:
                text += makers[self.to](played) + "\n"
            except ValueError as error:
                raise ValueError(f"game {number}: {error}") from None
        if self.out:
            Path(self.out).write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)


def _record_line(played: LoadedGame) -> str:
    record = played.record
    return records.to_json(
        records.of_game(
            played.game,
            players=record.players if record else None,
            values=record.values if record else None,
        )
    )


def _moves(played: LoadedGame) -> str:
    name = name_of(played.game.rules)
    rules = name if name in PRESETS else json.dumps(played.game.rules.to_dict())
    return "\n".join([f"# {rules}", *render.move_lines(played.game)])


def _code(played: LoadedGame) -> str:
    return hkoi_code.encode(played.game)


def _has_colour(console: Console) -> bool:
    return console.color_system is not None


def _text(state: State, console: Console) -> str:
    return render.text(state, color=_has_colour(console))


def _watch(game: Game, console: Console, seconds: float) -> None:
    render.check_seconds(seconds)
    with Live(console=console, auto_refresh=False) as live:
        for state in game.states:
            live.update(Text.from_ansi(_text(state, console)), refresh=True)
            time.sleep(seconds)


def _write(out: str, makers: Mapping[str, Callable[[], str | bytes]]) -> None:
    """Write the content that the file's ending asks for."""
    ending = Path(out).suffix
    if ending not in makers:
        raise ValueError(f"--out {out}: the ending is not one of {', '.join(makers)}")
    made = makers[ending]()
    Path(out).write_bytes(made if isinstance(made, bytes) else made.encode("utf-8"))
