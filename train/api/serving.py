"""Serves players: on a page to play against, and to other programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from train.api.arguments import AnyRules, Flag, ReadFile, arg
from train.api.signatures import verb
from train.config import DEFAULT_RULES, SHIPPED
from train.runtime.errors import usage_errors
from train.runtime.fields import AtLeastOne, Count, Seed, Whole
from train.runtime.interrupts import leave
from train.runtime.showing import tell

if TYPE_CHECKING:
    from train.engine.options import EngineOptions
    from train.engine.sessions import Sessions
    from train.players.basic import Player
    from wallgo_jax.game.rules import Rules


@verb
def serve_page(
    *,
    rules: AnyRules | None = None,
    player: Annotated[str | None, arg("PLAYER", "(default: the rules' own)")] = None,
    port: Annotated[Whole, Field(ge=0, le=65535)] = 8642,
    no_browser: Flag = False,
    puzzles: ReadFile | None = None,
) -> int:
    """Play against the machine or other people, on a local page, until Ctrl-C.

    Args:
      rules: rules of the first game: preset's name, JSON object, or file (JSON or TOML).
      player: the machine: a player that searches, as docs/players.md names it, without simulations.
      port: port at 127.0.0.1; 0 for any free one.
      no_browser: print the page's address without opening a browser.
      puzzles: file of puzzles for the page, in place of those that come with the package.

    Returns:
      The exit code.

    Raises:
      UsageError: the player or the rules are not allowed, or the port is taken.

    Example:
      `train.serve_page(rules="playwallgo-2p")`
    """
    from train.runtime.errors import require

    require("play", "play", "aiohttp")
    from train.api.players import rules_for
    from train.players.registry import check_rules, make_level_player
    from train.review.puzzle_file import read_puzzles, shipped_puzzles
    from train.ui import server

    played = rules_for([player] if player else [], rules)
    if player:
        check_rules(make_level_player(player), played)
    shown = shipped_puzzles() if puzzles is None else read_puzzles(Path(puzzles))
    return server.run(played, player=player or "", port=port, opens=not no_browser, puzzles=shown)


@verb
def serve_engine(
    player: Annotated[str, arg("[PLAYER]", f"(default: {SHIPPED})")] = SHIPPED,
    *,
    rules: Annotated[
        Sequence[AnyRules],
        arg("RULES ...", f"(default: the player's own, else {DEFAULT_RULES})"),
    ] = (),
    batch: Annotated[Sequence[AtLeastOne], arg("INT ...")] = (1, 8, 64, 256),
    trees: Whole = 256,
    nodes: Count = 0,
    chunk: AtLeastOne = 16,
    fresh: Flag = False,
    seed: Seed = 0,
    config: ReadFile | None = None,
    transfer: Flag = False,
) -> int:
    """Answer other programs about positions and moves: JSON lines on standard input and output, as
    docs/engine.md describes, until the input ends.

    Args:
      player: player with a network, or heuristic-search, named as in docs/players.md. Its budget is
        used for each answer, unless the session or the request names another.
      rules: preset's name, JSON object, or file: the first is for sessions that name no rules.
        Sessions may have any rules with the same board size, number of players and number of
        stones.
      batch: batch sizes: how many sessions are searched at once. Each size is compiled at the
        start.
      trees: number of sessions whose trees are kept.
      nodes: number of nodes for which a tree has room; 0 for four times the budget, at least 1024.
      chunk: simulations after which waiting sessions join a batch.
      fresh: search each position anew, without the tree of earlier moves, as players do in matches.
      seed: random seed of moves that are drawn with a temperature.
      config: TOML file of a run; its tables [heuristics] weigh the players ethen and wjx.
      transfer: let networks play rules that they were not trained on.

    Returns:
      The exit code, 0 also at a SIGTERM before there are sessions.

    Raises:
      UsageError: the player, the rules or a number is not allowed.

    Example:
      `train.serve_engine("heuristic-search:wjx@32")`
    """
    from train.config import read_config
    from train.engine.options import EngineOptions

    with usage_errors():
        sizes = EngineOptions(
            batch_sizes=tuple(sorted(set(batch))),
            chunk=chunk,
            nodes=nodes,
            trees=trees,
            keeps_trees=not fresh,
            seed=seed,
        )
    with _answering() as responses:
        from train.api.players import rules_for
        from train.engine.protocol import Protocol
        from train.engine.server import serve
        from train.players.registry import make_evaluating_player

        answering = make_evaluating_player(
            player, heuristics=read_config(config).heuristics, transfer=transfer
        )
        played = [rules_for((player,), each) for each in rules or ("",)]
        engines = _compiled(answering, played, sizes)
        source = sys.stdin.fileno()
        asyncio.run(serve(Protocol(engines), read_from=source, write_to=responses))
        if any(engine.programs.is_compiling for engine in engines):
            leave(0)
    return 0


@contextlib.contextmanager
def _answering() -> Iterator[int]:
    """A descriptor for responses alone: whatever else is printed goes to standard error. SIGTERM
    ends the process with 0, also while it imports and compiles. Both are undone in the end."""
    before = signal.signal(signal.SIGTERM, lambda signum, frame: leave(0))
    output = sys.stdout.fileno()
    responses = os.dup(output)
    os.dup2(sys.stderr.fileno(), output)
    try:
        yield responses
    finally:
        os.dup2(responses, output)
        os.close(responses)
        signal.signal(signal.SIGTERM, before)


def _compiled(player: Player, played: Sequence[Rules], sizes: EngineOptions) -> list[Sessions]:
    """Sessions of each shape that the rules have, compiled."""
    from train.engine.sessions import Sessions
    from wallgo_jax.game.rules import name_of
    from wallgo_jax.game.state import sizes_of

    by_shape: dict[Any, Rules] = {}
    for rules in played:
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
