"""A game in the terminal: the board in colour, typed moves with completion, hints, takeback."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console

from train.runtime.errors import UsageError
from train.runtime.interrupts import leave
from train.ui import wire
from train.ui.games import saving
from train.ui.games.game_tree import GameTree, path_to
from train.ui.games.levels import LEVELS, opponent_for
from train.ui.games.seats import MACHINE, PERSON, Seat
from train.ui.games.table import Table
from train.ui.games.thinking import EngineThinker
from train.ui.games.thoughts import Idea
from wallgo_jax import render
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import COLOURS, format_action
from wallgo_jax.view import captions
from wallgo_jax.view.snapshot import Snapshot

COMMANDS = {
    "hint": "show good moves",
    "back": "take back to your last move",
    "eval": "show each player's chance to win",
    "board": "draw the board again",
    "moves": "list the moves so far",
    "save": "write the game to a file: save FILE",
    "resign": "give the game up",
    "help": "list the commands",
    "quit": "leave",
}
_HINTS = 3


def run(rules: Rules, *, player: str, level: str, colour: str) -> int:
    """Play one game; returns the exit code.

    Args:
      rules: of the game.
      player: the machine's name, or empty for the one that comes with the rules.
      level: of the machine in all other seats, or `person`.
      colour: the person's.

    Raises:
      UsageError: there is no such level or colour.
    """
    if level not in (*LEVELS, PERSON):
        raise UsageError(f"play: level {level!r} is not one of {', '.join(LEVELS)}, {PERSON}")
    colours = COLOURS[: rules.players]
    if colour.capitalize() not in colours:
        raise UsageError(f"play: colour {colour!r} is not one of {', '.join(colours)}")
    own = colours.index(colour.capitalize())
    machine = Seat(PERSON) if level == PERSON else Seat(MACHINE, level)
    seats = [Seat(PERSON) if each == own else machine for each in range(rules.players)]
    try:
        asyncio.run(_Game(rules, seats, EngineThinker(player), player).run())
    except KeyboardInterrupt:
        print("left")
    return 0


def completions(snapshot: Snapshot, typed: str) -> list[str]:
    """What a typed word can become, a part of the move at a time: the stone, the cell, the wall.

    Moves are legal ones of the position; commands are offered as well.
    """
    moves = [format_action(action, grid=snapshot.grid) for action in sorted(snapshot.legal)]
    found: dict[str, None] = {}
    for move in moves:
        origin, arrow, rest = move.partition("->")
        target, colon, _ = rest.partition(":")
        if ":" in typed or not arrow:
            part = move
        elif "->" in typed:
            part = f"{origin}->{target}{colon}"
        else:
            part = f"{origin}->"
        if part.lower().startswith(typed.lower()):
            found[part] = None
    return [*found, *(name for name in COMMANDS if typed and name.startswith(typed.lower()))]


class _Completer(Completer):
    """Completes moves of a table's position."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield what the word before the cursor can become."""
        typed = document.text_before_cursor.strip()
        for text in completions(self._table.tree.current.snapshot, typed):
            yield Completion(text, start_position=-len(typed))


class _Game:
    """One game and its prompt."""

    def __init__(
        self, rules: Rules, seats: Sequence[Seat], thinker: EngineThinker, player: str
    ) -> None:
        self._console = Console(highlight=False)
        self._thinker = thinker
        self._name = player or opponent_for(rules).name
        self._table = Table(GameTree(rules), seats, thinker)
        self._changed = asyncio.Event()
        self._is_done = False
        self._drawn: object = None

    async def run(self) -> None:
        """Play until the game is left."""
        table = self._table
        table.listen(self._changed.set)
        machines = [seat.level for seat in table.seats if seat.is_machine]
        with_whom = f"against {self._name}, {machines[0]}" if machines else "with people"
        self._say(
            f"{captions.rules_text(table.tree.rules)}, {with_whom}. 'help' lists the commands."
        )
        ask = self._prompt() if sys.stdin.isatty() else _read_line
        try:
            while not self._is_done:
                await self._until_person()
                self._draw()
                if table.complaint:
                    raise UsageError(table.complaint)
                try:
                    line = await ask()
                except EOFError:
                    break
                await self._answer(line.strip())
        except (asyncio.CancelledError, KeyboardInterrupt):
            if self._thinker.is_compiling:
                self._say("left")
                leave(0)
            raise
        finally:
            table.close()
            self._thinker.shut_down()
        if self._thinker.is_compiling:
            leave(0)  # The loop's end would wait for minutes.

    def _prompt(self) -> Callable[[], Awaitable[str]]:
        session: PromptSession[str] = PromptSession(
            completer=_Completer(self._table), complete_while_typing=True
        )

        async def ask() -> str:
            with patch_stdout():
                return await session.prompt_async("move> ")

        return ask

    async def _until_person(self) -> None:
        """Wait while the machine moves."""
        table = self._table
        if table.may_play or table.is_over:
            return
        with self._console.status("the machine is thinking"):
            while not (table.may_play or table.is_over or table.complaint):
                self._changed.clear()
                await self._changed.wait()

    def _draw(self) -> None:
        """Draw the board, unless it is what was drawn last."""
        node = self._table.tree.current
        shown = node.number, self._table.forfeit
        if shown == self._drawn:
            return
        self._drawn = shown
        colour = self._console.is_terminal and not self._console.no_color
        self._console.file.write(f"\n{render.text(node.state, color=colour).rstrip()}\n")
        if self._table.forfeit is not None:
            self._say(wire.status(self._table))

    async def _answer(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        known = [name for name in COMMANDS if word and name.startswith(word.lower())]
        name = word.lower() if word.lower() in COMMANDS else known[0] if len(known) == 1 else ""
        try:
            if name:
                await self._do(name, rest.strip())
            elif line:
                self._table.play(line)
        except (ValueError, OSError) as error:
            is_word = line.isalpha() and not name
            self._say(f"{error}; 'help' lists the commands" if is_word else f"{error}")

    async def _do(self, name: str, rest: str) -> None:
        table = self._table
        if name == "quit":
            self._is_done = True
        elif name == "board":
            self._drawn = None
        elif name == "back":
            table.take_back()
        elif name == "resign":
            table.resign()
        elif name == "save":
            self._save(rest)
        elif name == "moves":
            self._say(_moves_text(table))
        elif name == "help":
            for each, text in COMMANDS.items():
                self._say(f"  {each:8}{text}")
            self._say("  B6->B5:up  a move: from, to, side of the wall; C3 places a stone")
        elif name in ("hint", "eval"):
            await self._think(name)

    async def _think(self, name: str) -> None:
        table, node = self._table, self._table.tree.current
        table.ask_hint()
        with self._console.status("searching"):
            while table.is_thinking or node.thought is None:
                self._changed.clear()
                await self._changed.wait()
                if table.complaint:
                    return
        thought = node.thought
        if name == "eval":
            chances = enumerate(thought.chances)
            self._say(", ".join(f"{COLOURS[player]} {chance:.0%}" for player, chance in chances))
            return
        for idea in thought.ideas[:_HINTS]:
            self._say(_idea_text(idea, node.snapshot.grid))

    def _save(self, path: str) -> None:
        if not path:
            raise ValueError("save: name a file, such as save game.jsonl")
        _, text = saving.write_game(self._table)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self._say(f"written: {path}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False)


async def _read_line() -> str:
    """A line of standard input that is no terminal."""
    line = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        raise EOFError
    return line


def _idea_text(idea: Idea, grid: int) -> str:
    moves = [format_action(action, grid=grid) for action in idea.line]
    after = f", then {' '.join(moves[1:4])}" if len(moves) > 1 else ""
    return f"  {moves[0]:16}wins {idea.win_chance:.0%}{after}"


def _moves_text(table: Table) -> str:
    line = path_to(table.tip)[1:]
    return " ".join(f"{node.depth}. {node.text}" for node in line) or "no move yet"
