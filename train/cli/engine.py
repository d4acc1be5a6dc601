"""The commands that sit down to play: at a board (`play`), and for other programs (`engine`)."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from train.cli import options
from train.cli.options import File, Seed, WeightsFile, arg
from train.config import SHIPPED, read_config
from train.engine.options import EngineOptions
from train.runtime.errors import require, usage_errors
from train.runtime.fields import Whole
from train.runtime.interrupts import leave
from train.runtime.showing import tell
from wallgo_jax.cli.parsing import Flag
from wallgo_jax.game.rules import Rules, name_of

if TYPE_CHECKING:
    from train.engine.sessions import Sessions


@dataclasses.dataclass(frozen=True)
class Play:
    """Play against the machine or other people, on a local page."""

    EXAMPLES = (
        "play --rules playwallgo-3p",
        "play --port 9000 --no-browser --puzzles out/puzzles.jsonl",
    )

    rules: options.RulesText = ""
    """Rules of the first game: preset's name, JSON object, or file (JSON or TOML)."""
    player: Annotated[str, arg("PLAYER", "(default: the rules' own)")] = ""
    """The machine: a player that searches, as docs/players.md names it, without simulations."""
    port: Annotated[Whole, Field(ge=0, le=65535)] = 8642
    """Port at 127.0.0.1; 0 for any that is free."""
    no_browser: Flag = False
    """Print the page's address, but open no browser."""
    puzzles: File = None
    """File of puzzles for the page, in place of those that come with the package."""

    def run(self) -> int:
        """Returns the exit code."""
        require("play", "play", "aiohttp")
        from train.api.players import rules_for

        rules = rules_for([self.player] if self.player else [], self.rules)
        if self.player:
            from train.players.registry import check_rules, make_level_player

            check_rules(make_level_player(self.player), rules)
        from train.review.puzzle_file import read_puzzles, shipped_puzzles
        from train.ui import server

        puzzles = read_puzzles(self.puzzles) if self.puzzles else shipped_puzzles()
        return server.run(
            rules, player=self.player, port=self.port, opens=not self.no_browser, puzzles=puzzles
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Engine:
    """Answer other programs about positions and moves: JSON lines on standard input and output, as
    docs/engine.md describes, until the input ends."""

    EXAMPLES = (
        "engine pretrained:wallzero-4stone@64",
        "engine heuristic-search:wjx@32 --rules hkoi playwallgo-3p",
    )

    player: options.ShippedPlayer = SHIPPED
    """Player with a network, or heuristic-search, named as in docs/players.md. Its budget is that
    of an answer, unless the session or the request says another."""
    rules: Annotated[
        tuple[str, ...],
        arg("RULES ...", f"(default: the player's own, else {options.DEFAULT_RULES})"),
    ] = ()
    """Preset's name, JSON object, or file: the first is for sessions that name no rules. Sessions
    can have all rules of the same sizes (board, players, stones)."""
    batch: str = "1,8,64,256"
    """Numbers of sessions that are searched in one batch; each is compiled at the start."""
    trees: Whole = 256
    """Sessions whose trees are kept."""
    nodes: Whole = 0
    """Room of a tree; 0 for four times the budget, at least 1024."""
    chunk: Whole = 16
    """Simulations after which waiting sessions join a batch."""
    fresh: Flag = False
    """Search each position anew, without the tree of the moves before, as players of a match do."""
    seed: Seed = 0
    """Random seed of moves that are drawn with a temperature."""
    config: WeightsFile = None
    transfer: Flag = False
    """Let networks play rules that they were not trained on."""

    def run(self) -> int:
        """Returns the exit code, 0 also at a SIGTERM before there are sessions."""
        signal.signal(signal.SIGTERM, lambda signum, frame: leave(0))

        sizes = self._options()
        # Whatever else is printed must not stand between the responses.
        responses = os.dup(sys.stdout.fileno())
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        engines = self._engines(sizes)

        from train.engine.protocol import Protocol
        from train.engine.server import serve

        source = sys.stdin.fileno()
        asyncio.run(serve(Protocol(engines), read_from=source, write_to=responses))
        if any(engine.programs.is_compiling for engine in engines):
            leave(0)
        return 0

    def _options(self) -> EngineOptions:
        with usage_errors():
            return EngineOptions(
                batch_sizes=tuple(sorted(set(options.numbers_of("batch", self.batch)))),
                chunk=self.chunk,
                nodes=self.nodes,
                trees=self.trees,
                keeps_trees=not self.fresh,
                seed=self.seed,
            )

    def _engines(self, sizes: EngineOptions) -> list[Sessions]:
        """Sessions of each shape that the rules have, compiled."""
        from train.api.players import rules_for
        from train.engine.sessions import Sessions
        from train.players.registry import make_evaluating_player
        from wallgo_jax.game.state import sizes_of

        player = make_evaluating_player(
            self.player, heuristics=read_config(self.config).heuristics, transfer=self.transfer
        )
        by_shape: dict[Any, Rules] = {}
        for rules in [rules_for((self.player,), text) for text in self.rules or ("",)]:
            by_shape.setdefault(sizes_of(rules), rules)
        engines = []
        for rules in by_shape.values():
            began = time.perf_counter()
            engines.append(Sessions(player, rules, sizes))
            seconds = time.perf_counter() - began
            _log(f"{player.name}: {name_of(rules)} compiled in {seconds:.1f} s")
        _log("ready")
        if len(sizes.batch_sizes) > 1:
            # Only now, so that nothing else compiles more slowly for it.
            for engine in engines:
                engine.programs.compile_rest()
            threading.Thread(target=_tell_compiled, args=(engines,), daemon=True).start()
        return engines


def _tell_compiled(engines: Sequence[Sessions]) -> None:
    """Tell once batches of all sizes are compiled; an engine that ends before cancels that."""
    # A failure is told where it happens.
    with contextlib.suppress(CancelledError, Exception):
        for engine in engines:
            engine.programs.wait()
        _log(f"batches of {engines[0].options.batch_sizes[-1]} sessions are compiled")


def _log(text: str) -> None:
    tell(f"engine: {text}")
