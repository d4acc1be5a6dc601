"""A game in the terminal: the board in colour, typed moves with completion, hints, takeback."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from train.runtime.errors import UsageError
from train.runtime.interrupts import leave
from train.ui import saving, wire
from train.ui.game_session import GameSession
from train.ui.game_tree import GameTree, path_to
from train.ui.machine import HINT, PERSON, Machine, seats_of_person
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
    "again": "begin another game",
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
    seats = seats_of_person(rules, level=level, colour=colour)
    try:
        asyncio.run(_TerminalGame(rules, seats, Machine(player)).run())
    except KeyboardInterrupt:
        print("left")
    return 0


def completions(snapshot: Snapshot, typed: str) -> list[str]:
    """The completions of a typed word, a part of the move at a time: the stone, the cell, the wall.

    Moves are legal ones of the position; commands are offered as well.
    """
    parts: dict[str, None] = {}
    for action in sorted(snapshot.legal):
        move = format_action(action, grid=snapshot.grid)
        origin, arrow, rest = move.partition("->")
        target, colon, _ = rest.partition(":")
        if ":" in typed or not arrow:
            parts[move] = None
        else:
            parts[f"{origin}->{target}{colon}" if "->" in typed else f"{origin}->"] = None
    moves = [part for part in parts if part.lower().startswith(typed.lower())]
    return [*moves, *(name for name in COMMANDS if typed and name.startswith(typed.lower()))]


class _TerminalGame:
    """One game and its prompt."""

    def __init__(self, rules: Rules, seats: Sequence[str], machine: Machine) -> None:
        self._console, self._machine = Console(highlight=False, markup=False), machine
        self._print = self._console.print
        self.session = GameSession(GameTree(rules), seats, machine)
        self._is_done = False
        self._drawn: tuple[object, ...] = ()
        level = next((seat for seat in seats if seat != PERSON), None)
        rival = f"against {machine.name_for(rules)}, {level}" if level else "with people"
        self._print(f"{captions.rules_text(rules)}, {rival}. 'help' lists the commands.")

    async def run(self) -> None:
        """Play until the game is left."""
        read = self._prompt() if sys.stdin.isatty() else _read_line
        if set(self.session.seats) != {PERSON}:
            self._machine.prepare(self.session.tree.rules)  # While the person places stones.
        try:
            while not self._is_done:
                await self._wait_while(lambda: self.session.is_machines_turn)
                self._draw()
                if self.session.error:
                    raise UsageError(self.session.error)
                await self._answer((await read()).strip())
        except EOFError:
            pass
        except (asyncio.CancelledError, KeyboardInterrupt):
            if self._machine.is_compiling:
                self._print("left")
                leave(0)
            raise
        finally:
            self.session.close()
            self._machine.shut_down()
        if self._machine.is_compiling:
            leave(0)  # The loop's end would wait for minutes.

    def _prompt(self) -> Callable[[], Awaitable[str]]:
        prompt: PromptSession[str] = PromptSession(complete_while_typing=True)

        def words() -> list[str]:
            typed = prompt.default_buffer.document.text_before_cursor.strip()
            return completions(self.session.tree.current.snapshot, typed)

        prompt.completer = WordCompleter(words, ignore_case=True, sentence=True)

        async def read() -> str:
            with patch_stdout():
                return await prompt.prompt_async("move> ")

        return read

    async def _wait_while(self, is_waiting: Callable[[], bool]) -> None:
        """Wait, and show what the machine does and for how long."""
        if not is_waiting():
            return
        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, console=self._console, transient=True) as bars:
            bar = bars.add_task("The machine is thinking", total=None)

            def show() -> None:
                if (now := wire.activity(self.session)) is not None:
                    bars.update(bar, description=now["text"])

            self.session.listen(show)
            try:
                await self.session.wait_while(is_waiting)
            finally:
                self.session.leave(show)

    def _draw(self) -> None:
        """Draw the board, unless it is the one drawn last."""
        node = self.session.tree.current
        shown = self.session, node.number, self.session.forfeit
        if shown == self._drawn:
            return
        self._drawn = shown
        colour = self._console.is_terminal and not self._console.no_color
        self._console.file.write(f"\n{render.text(node.state, color=colour).rstrip()}\n")
        if (end := wire.ending(self.session)) is not None:
            cells = ", ".join(f"{c} {n}" for c, n in zip(COLOURS, end["cells"], strict=False))
            ratio = "" if end["ratio"] is None else f" (ratio {end['ratio']})"
            self._print(
                f"{end['title']} after {wire.count(end['plies'], 'ply')}. Cells: {cells}{ratio}."
            )
            self._print("'again' begins another game; 'save FILE' keeps this one for a review.")

    async def _answer(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        starts = [name for name in COMMANDS if word and name.startswith(word.lower())]
        name = starts[0] if len(starts) == 1 else word.lower()
        try:
            if name in COMMANDS:
                await self._do(name, rest.strip())
            elif line:
                self.session.play(line)
        except (ValueError, OSError) as error:
            is_word = line.isalpha() and name not in COMMANDS
            self._print(f"{error}; 'help' lists the commands" if is_word else f"{error}")

    async def _do(self, name: str, rest: str) -> None:
        session = self.session
        if name == "quit":
            self._is_done = True
        elif name == "board":
            self._drawn = ()
        elif name == "back":
            session.take_back()
        elif name == "resign":
            session.resign()
        elif name == "again":
            session.close()
            tree = GameTree(session.tree.rules)
            self.session = GameSession(tree, session.seats, self._machine)
        elif name == "save":
            if not rest:
                raise ValueError("save: name a file, such as save game.jsonl")
            with open(rest, "w", encoding="utf-8") as file:
                file.write(saving.write_game(session)[1])
            self._print(f"written: {rest}")
        elif name == "moves":
            line = enumerate(path_to(session.tip)[1:], start=1)
            self._print(" ".join(f"{ply}. {node.text}" for ply, node in line) or "no move yet")
        elif name == "help":
            for each, text in COMMANDS.items():
                self._print(f"  {each:8}{text}")
            self._print("  B6->B5:up  a move: from, to, side of the wall; C3 places a stone")
        else:
            await self._evaluate(name)

    async def _evaluate(self, name: str) -> None:
        """Print the answer to `hint` or `eval`."""
        session, node = self.session, self.session.tree.current
        session.ask_hint()
        await self._wait_while(
            lambda: node.report is None or node.report.simulations < HINT.simulations
        )
        if node.report is None or session.error:
            return
        view = wire.evaluation_view(node.report)
        if name == "eval":
            chances = zip(COLOURS, view["chances"], strict=False)
            self._print(", ".join(f"{colour} {chance:.0%}" for colour, chance in chances))
            return
        colour = COLOURS[node.snapshot.player]
        self._print(f"moves, {view['order']}:")
        for idea in view["ideas"][:_HINTS]:
            move, *after = idea["line"]
            then = f", then {' '.join(after[:3])}" if after else ""
            visits = f", {wire.count(idea['visits'], 'visit')}" if idea["visits"] else ""
            self._print(f"  {move:16}{colour} {idea['winChance']:.0%}{visits}{then}")


async def _read_line() -> str:
    """A line of standard input that is no terminal."""
    line = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        raise EOFError
    return line
