"""Games from files, every move of one graded, and win chances that come true."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from train.api.arguments import (
    AnyGame,
    AnyRules,
    File,
    Files,
    Flag,
    Progress,
    ReadFile,
    arg,
)
from train.api.signatures import OPTION, verb, without
from train.config import DEFAULT_RULES, SHIPPED
from train.runtime.errors import usage_errors
from train.runtime.fields import AtLeastOne, Count, Seed, Whole

if TYPE_CHECKING:
    from train.review.page import Review
    from train.review.reliability import Reliability
    from wallgo_jax.formats.sources import LoadedGame
    from wallgo_jax.view.game_replay import Game

LEAST_MEASURED = 256
"""Positions from which on an interrupted calibration is worth its figures."""


@verb
def load_game(source: File, *, game: AtLeastOne = 1, rules: AnyRules | None = None) -> Game:
    """Load a game from a record file, a file of moves or of an HKOI code, or the moves themselves.

    Args:
      source: the file or the text.
      game: number of the game in a record file, from 1.
      rules: of moves and codes that do not say theirs; `wallzero-4stone` by default.

    Raises:
      UsageError: what is wrong with it, where, and what is allowed.

    Example:
      `train.load_game("runs/quickstart/game.jsonl")`
    """
    return _load(str(source), game, rules).game


def _load(source: str, number: int, rules: AnyRules | None) -> LoadedGame:
    """A game of a source, with the players' names where they are known."""
    from train.api.configs import read_rules
    from train.runtime.files import reading
    from wallgo_jax.formats.sources import SourceRequest, read_games

    default = read_rules(DEFAULT_RULES if rules is None else rules)
    with usage_errors(), reading(source):
        return next(read_games(SourceRequest(source, game=number, default_rules=default)))


@verb
def review_game(
    source: AnyGame,
    player: Annotated[
        str | None,
        OPTION,
        arg(
            "PLAYER",
            "(default: a model that ships for the rules, else heuristic-search:wjx, with 256 "
            "simulations)",
        ),
    ] = None,
    *,
    rules: Annotated[
        AnyRules | None, arg("RULES", f"(default: the game's, else {DEFAULT_RULES})")
    ] = None,
    game: AtLeastOne = 1,
    transfer: Flag = False,
    calibration: ReadFile | None = None,
    siblings: Annotated[Whole | None, arg("PLY", "")] = None,
    progress: Progress = False,
) -> Review:
    """Review a game: search every position, and grade every move.

    Args:
      source: a record file, a file of moves or of an HKOI code, `-` for standard input, or the
        moves; Python also takes a game and a record.
      player: player that searches, named as in docs/players.md.
      rules: rules of moves and codes: preset's name, JSON object, or file (JSON or TOML).
      game: number of the game in a record file, from 1.
      transfer: let a network review rules that it was not trained on.
      calibration: file that `calibrate --json` wrote, in place of the calibration in the model's
        card.
      siblings: ply whose move is compared with each wall that it could have built.
      progress: show bars.

    Raises:
      UsageError: the game has no move or cannot be read, or the player cannot review it.

    Example:
      `train.review_game("runs/quickstart/game.jsonl").write("review.html")`
    """
    from train.review import game_review
    from train.review.page import Review, compare_siblings
    from train.review.player import player_for_game
    from train.runtime.interrupts import follow
    from wallgo_jax.formats import records
    from wallgo_jax.formats.records import Record
    from wallgo_jax.formats.sources import LoadedGame

    if isinstance(source, str | Path):
        source = _load(str(source), game, rules)
    names = source.players if isinstance(source, Record | LoadedGame) else None
    with usage_errors():
        played = records.replay(source) if isinstance(source, Record) else source
    played = played.game if isinstance(played, LoadedGame) else played
    calibrated = None if calibration is None else Path(calibration)
    reviewer = player_for_game(played, player or "", transfer=transfer, calibration=calibrated)
    live = sum(not state.position.terminated for state in played.states)
    total = live * reviewer.search.simulations
    title = f"searching {len(played.states)} positions"
    step = None
    if siblings is not None:
        with follow(progress, "comparing walls", 0, "simulations") as work:
            step = compare_siblings(reviewer, played, siblings, on_progress=work.task)
    with follow(progress, title, total, "simulations") as work:
        review = game_review.review_game(reviewer, played, players=names, on_progress=work.task)
    return Review(**vars(review), siblings=step)


@verb
def calibrate(
    player: Annotated[str, arg("[PLAYER]", f"(default: {SHIPPED})")] = SHIPPED,
    *,
    games: Annotated[Files, arg("FILE", "(default: it plays against itself)")] = (),
    rules: AnyRules | None = None,
    own_games: Annotated[Whole, Field(ge=2), without("games")] = 400,
    own_simulations: Annotated[Whole, Field(ge=2), without("games")] = 32,
    opening_plies: Annotated[Count, without("games")] = 4,
    positions: Annotated[Whole, Field(ge=2)] = 4000,
    seed: Seed = 0,
    card: Flag = False,
    progress: Progress = False,
) -> Reliability:
    """Measure whether a player's win chances come true, before and after search, and fit them.
    Reviews read the fit from a model's card, or from a file of these figures as JSON.

    Args:
      player: player that searches, named as in docs/players.md.
      games: record files of finished games.
      rules: preset's name, JSON object, or file (JSON or TOML).
      own_games: games that it plays against itself if no file is given.
      own_simulations: simulations of a move in those games.
      opening_plies: random plies with which each of those games starts.
      positions: number of positions that are searched, drawn from all games.
      seed: random seed.
      card: write the calibration into the card of the exported folder or of the model.
      progress: show bars.

    Raises:
      UsageError: a player, a file or a number is not allowed, or there are too few games.

    Example:
      `train.calibrate("pretrained:wallzero-4stone@64", own_games=100).table()`
    """
    from train.api.players import rules_for
    from train.checkpoints.exported import CALIBRATION_KEY, CARD_FILE, add_to_card
    from train.data.record_dataset import read_recorded_games
    from train.review import own_games as playing
    from train.review import reliability
    from train.review.player import card_folder, make_analysis_player
    from train.runtime.errors import check_two_players
    from train.runtime.interrupts import follow

    folder = card_folder(player) if card else None
    played = rules_for([player], rules)
    check_two_players(played, "calibrate")
    searching = make_analysis_player(player, played)
    simulations = searching.search.simulations
    with follow(progress, answer="the positions searched so far are measured") as work:
        if games:
            recorded = read_recorded_games([Path(file) for file in games], played, keys=())
        else:
            with work.display.task("own games", own_games, "games") as task:
                recorded = playing.play_own_games(
                    searching,
                    games=own_games,
                    simulations=own_simulations,
                    opening_plies=opening_plies,
                    seed=seed,
                    on_progress=task,
                )
        plies = sum(len(record.actions) for record in recorded.records)
        total = min(positions, plies) * simulations
        with work.display.task("searching positions", total, "simulations") as task:

            def on_progress(done: int) -> None:
                if done >= LEAST_MEASURED * simulations:
                    work.should_stop.keeps_work()
                task(done)

            measured = reliability.measure_reliability(
                searching,
                recorded,
                positions=positions,
                seed=seed,
                on_progress=on_progress,
                should_stop=work.should_stop,
            )
    if folder is not None and not measured.is_interrupted:
        add_to_card(folder, {CALIBRATION_KEY: measured.calibration._asdict()})
        written = {folder / CARD_FILE: "calibration"}
        measured = dataclasses.replace(measured, written=written)
    return measured
