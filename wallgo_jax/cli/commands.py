"""The commands `show`, `replay` and `convert`.

What a command needs is imported when it runs, so that `--help` answers at once.
"""

from __future__ import annotations

import dataclasses
import gzip
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wallgo_jax.cli.parsing import Flag

if TYPE_CHECKING:
    from rich.console import Console

    from wallgo_jax.formats.sources import LoadedGame
    from wallgo_jax.game.state import State
    from wallgo_jax.view.game_replay import Game

Source = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
RulesText = Annotated[str, tyro.conf.arg(metavar="RULES", help_behavior_hint="")]
OutFile = Annotated[str, tyro.conf.arg(metavar="FILE", help_behavior_hint="")]
Theme = Literal["auto", "light", "dark"]
SECONDS = 0.9
"""Time for one ply where none is said."""


@dataclasses.dataclass(frozen=True)
class Show:
    """Show one position, as text or as a picture."""

    EXAMPLES = (
        "show wallzero-4stone",
        'show "F3 B2 B6 F5" --rules hkoi --ply 3',
        "show games.jsonl --game 2 --ply 20 --out out/position.html",
    )

    source: Source
    """A preset's name, a file of a position or a game, `-` for standard input, or the moves."""
    rules: RulesText = ""
    """Rules of moves and codes: preset's name, JSON object, or file (JSON or TOML)."""
    ply: int = -1
    """Plies of the game to play before it is shown; -1 for all."""
    game: int = 1
    """Number of the game in a file of several, from 1."""
    grid: int = 0
    """Side length, in cells, of the grid of moves or a preset; 0 for the board's own."""
    diagram: Flag = False
    """Print a diagram that `show` can read again, in place of the picture."""
    out: OutFile = ""
    """File to write in place of printing: .svg, .png, .gif, .html or .txt (a diagram)."""
    theme: Theme = "auto"
    """Colours; `auto` is light in pictures, and in pages as the reader's system is set."""
    reach: Annotated[
        Literal["", "R", "B", "G", "Y"], tyro.conf.arg(metavar="{R,B,G,Y}", help_behavior_hint="")
    ] = ""
    """Player whose reachable cells pictures mark; empty for nobody."""

    def run(self, console: Console) -> None:
        """Print or write the position."""
        from wallgo_jax import render
        from wallgo_jax.formats import diagram
        from wallgo_jax.formats.sources import SourceRequest, read_position
        from wallgo_jax.notation import LETTERS

        _check_game(self.game)
        if self.out:
            _refuse_options({"--diagram": self.diagram}, "with --out; .txt files hold diagrams")
        if not _is_picture(self.out):
            pictured = {"--reach": bool(self.reach), "--theme": self.theme != "auto"}
            _refuse_options(pictured, "without a picture; name one by --out")
        state = read_position(
            SourceRequest(self.source, self.rules, self.grid, self.game), ply=self.ply
        )
        if not self.out:
            shown = diagram.draw(state) if self.diagram else _text(state, console)
            print(shown.rstrip("\n"))
            return
        reach = LETTERS.index(self.reach) if self.reach else None

        def svg() -> str:
            return render.svg(state, theme=_of_picture(self.theme), reach=reach)

        makers: dict[str, Callable[[], str | bytes]] = {
            ".svg": svg,
            ".png": lambda: render.png(svg()),
            ".gif": lambda: render.still_gif(svg()),
            ".html": lambda: render.position_page(state, theme=self.theme, reach=reach),
            ".txt": lambda: diagram.draw(state),
        }
        _write(self.out, makers, "a position")


@dataclasses.dataclass(frozen=True)
class Replay:
    """Replay a game, as text or as an animation."""

    EXAMPLES = (
        "replay games.jsonl --watch",
        "replay games.jsonl --game 2 --out out/game.html",
    )

    source: Source
    """A file of records, moves or HKOI codes, `-` for standard input, or the moves."""
    rules: RulesText = ""
    """Rules of moves and codes: preset's name, JSON object, or file (JSON or TOML)."""
    game: int = 1
    """Number of the game in a file of several, from 1."""
    grid: int = 0
    """Side length, in cells, of the grid of moves or a preset; 0 for the board's own."""
    steps: Flag = False
    """Print the position after every ply, not only the last."""
    watch: Flag = False
    """Play the game in the terminal."""
    seconds: float = SECONDS
    """Time for one ply in the terminal and in animations, in seconds."""
    out: OutFile = ""
    """File to write: .svg or .gif (animated), .html (stepped with the arrow keys) or .txt."""
    theme: Theme = "auto"
    """Colours; `auto` is light in pictures, and in pages as the reader's system is set."""

    def run(self, console: Console) -> None:
        """Print, play or write the game."""
        from wallgo_jax import render
        from wallgo_jax.formats.sources import SourceRequest, read_games

        _check_game(self.game)
        self._refuse_options()
        played = next(read_games(SourceRequest(self.source, self.rules, self.grid, self.game)))
        if self.out:
            self._write(played)
        elif self.watch:
            _watch(played.game, console, self.seconds)
        elif self.steps:
            print("\n\n".join(_text(state, console) for state in played.game.states))
        else:
            print(render.played_text(played.game, color=_has_colour(console)))

    def _refuse_options(self) -> None:
        if self.out:
            _refuse_options({"--steps": self.steps, "--watch": self.watch}, "with --out")
        if self.watch:
            _refuse_options({"--steps": self.steps}, "with --watch")
        if not _is_picture(self.out):
            is_themed, is_timed = self.theme != "auto", self.seconds != SECONDS
            _refuse_options({"--theme": is_themed}, "without a picture; name one by --out")
            if not self.watch:
                _refuse_options({"--seconds": is_timed}, "without --watch or a picture by --out")

    def _write(self, played: LoadedGame) -> None:
        from wallgo_jax import render

        game, players = played.game, played.players
        values = played.record.values if played.record else None
        theme = _of_picture(self.theme)
        makers: dict[str, Callable[[], str | bytes]] = {
            ".svg": lambda: render.animation(game, theme=theme, seconds=self.seconds),
            ".gif": lambda: render.gif(game, theme=theme, seconds=self.seconds),
            ".html": lambda: render.page(
                game, theme=self.theme, seconds=self.seconds, players=players, values=values
            ),
            ".txt": lambda: render.game_file(game, players=players),
        }
        _write(self.out, makers, f"a game of {len(game.actions)} plies")


@dataclasses.dataclass(frozen=True)
class Convert:
    """Convert games between record files, human notation and HKOI replay codes."""

    EXAMPLES = (
        "convert games.jsonl --to moves",
        "convert code.txt --to record --rules hkoi --out out/game.jsonl",
    )

    source: Source
    """A file of records, moves or HKOI codes, `-` for standard input, or the moves."""
    to: Literal["record", "moves", "hkoi"]
    """Format to write: records or HKOI codes, one game a line, or moves (sides as W0 to W3)."""
    rules: RulesText = ""
    """Rules of moves and codes: preset's name, JSON object, or file (JSON or TOML)."""
    game: int = 0
    """Number of the game in a file of several, from 1; 0 for all."""
    grid: int = 0
    """Side length, in cells, of the grid of moves or a preset; 0 for the board's own."""
    out: OutFile = ""
    """File to write in place of standard output; compressed if it ends in .gz."""

    def run(self, console: Console) -> None:
        """Print or write the games."""
        from wallgo_jax.formats.sources import SourceRequest, read_games

        del console
        games = read_games(SourceRequest(self.source, self.rules, self.grid, self.game))
        makers = {"record": _record_line, "moves": _moves, "hkoi": _code}
        text, number = "", 0
        for number, played in enumerate(games, start=self.game or 1):
            try:
                text += makers[self.to](played) + "\n"
            except ValueError as error:
                raise ValueError(f"game {number}: {error}") from None
        if self.out:
            count = number - (self.game or 1) + 1
            _save(Path(self.out), text.encode(), f"{count} game{'s'[: count != 1]}")
        else:
            sys.stdout.write(text)


def _record_line(played: LoadedGame) -> str:
    from wallgo_jax.formats import records

    record = played.record
    return records.to_json(
        records.of_game(
            played.game,
            players=played.players,
            values=record.values if record else None,
            extra=record.extra if record else None,
        )
    )


def _moves(played: LoadedGame) -> str:
    from wallgo_jax import render
    from wallgo_jax.formats import move_text
    from wallgo_jax.notation import CANONICAL_SIDES

    header = move_text.header(played.game.rules, played.players)
    return "\n".join([header, *render.move_lines(played.game, sides=CANONICAL_SIDES)])


def _code(played: LoadedGame) -> str:
    from wallgo_jax.formats import hkoi_code

    return hkoi_code.encode(played.game)


def _check_game(number: int) -> None:
    """Refuse the number of one game that is none."""
    if number < 1:
        raise ValueError(f"--game {number}: games are numbered from 1")


def _is_picture(out: str) -> bool:
    return Path(out).suffix.lower() not in ("", ".txt")


def _refuse_options(given: Mapping[str, bool], where: str) -> None:
    """Refuse options that are given where they have no effect."""
    for option, is_given in given.items():
        if is_given:
            raise ValueError(f"{option}: has no effect {where}")


def _of_picture(theme: Theme) -> str:
    return "light" if theme == "auto" else theme


def _has_colour(console: Console) -> bool:
    return console.color_system is not None and not console.no_color


def _text(state: State, console: Console) -> str:
    from wallgo_jax import render

    return render.text(state, color=_has_colour(console))


def _watch(game: Game, console: Console, seconds: float) -> None:
    from rich.live import Live
    from rich.text import Text

    from wallgo_jax import render

    render.check_seconds(seconds)
    with Live(console=console, auto_refresh=False) as live:
        for state in game.states:
            live.update(Text.from_ansi(_text(state, console)), refresh=True)
            time.sleep(seconds)


def _write(out: str, makers: Mapping[str, Callable[[], str | bytes]], what: str) -> None:
    """Write the content that the file's ending asks for."""
    ending = Path(out).suffix.lower()
    if ending not in makers:
        raise ValueError(f"--out {out}: the ending is not one of {', '.join(makers)}")
    made = makers[ending]()
    _save(Path(out), made if isinstance(made, bytes) else made.encode("utf-8"), what)


def _save(path: Path, content: bytes, what: str) -> None:
    """Write a file, and its folder if it is missing; say so."""
    from wallgo_jax.formats.files import write_whole

    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, gzip.compress(content) if path.suffix == ".gz" else content)
    print(f"written: {path} ({what})")
