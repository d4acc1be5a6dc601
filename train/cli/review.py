"""The commands that review games (`review`) and calibrate win chances (`experiment calibrate`)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from train.cli import options
from train.cli.options import READ, WRITTEN, Count, Positional, RandomSeed, Read, Written, arg
from train.config import SHIPPED
from train.runtime.errors import UsageError
from train.runtime.fields import Whole
from train.runtime.showing import sparing
from wallgo_jax.cli.parsing import Flag

Theme = Literal["auto", "light", "dark"]
DEFAULT_SIMULATIONS = 256
LEAST_MEASURED = 256
"""Positions from which on an interrupted calibration is worth its figures."""


@dataclasses.dataclass(frozen=True)
class Review:
    """Review a game: search every position, grade every move, write a page and figures."""

    EXAMPLES = (
        "review out/games.jsonl --game 2",
        "review out/games.jsonl --player pretrained:wallzero-4stone@1024 --siblings 21",
    )

    source: Annotated[Positional[str], arg("GAME"), READ]
    """A record file, a file of moves or of an HKOI code, `-` for standard input, or the moves."""
    player: Annotated[
        str,
        arg(
            "PLAYER",
            "(default: a model that ships for the rules, else "
            f"heuristic-search:wjx, with {DEFAULT_SIMULATIONS} simulations)",
        ),
    ] = ""
    """Player that searches, named as in docs/players.md."""
    rules: Annotated[
        options.SourceRules, arg(hint=f"(default: the game's, else {options.DEFAULT_RULES})")
    ] = ""
    game: options.GameNumber = 1
    transfer: Flag = False
    """Let a network review rules that it was not trained on."""
    calibration: Read = None
    """File that `experiment calibrate --json` wrote, in place of the calibration in the model's
    card."""
    siblings: Annotated[Whole | None, arg("PLY", "")] = None
    """Ply whose step is compared with each of its walls."""
    out: Annotated[Path, arg("FILE"), WRITTEN] = Path("out/review.html")
    """Page to write."""
    json: Annotated[options.Json, arg(hint="(default: beside the page)")] = None
    records: Written = None
    """File to write the game's record to, with the value of each ply, as the replay page shows."""
    theme: Theme = "auto"
    """Colours of the page; `auto` is as the reader's system is set."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.reviews import load_source, review_game
        from train.runtime.display import Display
        from wallgo_jax.formats import records
        from wallgo_jax.formats.sources import SourceRequest
        from wallgo_jax.game.rules import PRESETS

        if self.out.suffix.lower() != ".html":
            raise UsageError(f"--out {self.out}: the page's ending must be .html")
        default = PRESETS[options.DEFAULT_RULES]
        request = SourceRequest(self.source, self.rules, game=self.game, default_rules=default)
        loaded = load_source(request)
        figures = self.json or self.out.with_suffix(".json")
        options.check_files(self.out, figures, self.records)
        review = review_game(
            loaded,
            self.player,
            transfer=self.transfer,
            calibration=self.calibration,
            siblings=self.siblings,
            progress=Display(),
        )
        with sparing(self.out):
            review.write(self.out, theme=self.theme)
        if self.records is not None:
            with sparing(self.records):
                records.write(self.records, [review.record])
        page = self.out, f"{len(loaded.game.actions)} plies"
        return options.finish(review, figures, page, (self.records, "1 game"))


@dataclasses.dataclass(frozen=True)
class Calibrate:
    """Measure whether a player's win chances come true, before and after search, and fit them."""

    EXAMPLES = (
        "calibrate pretrained:wallzero-4stone@256 --png out/reliability.png",
        "calibrate models/mine@64 --games out/games.jsonl.gz --card",
    )

    player: options.ShippedPlayer = SHIPPED
    """Player that searches, named as in docs/players.md."""
    games: Annotated[tuple[Path, ...], arg("FILE", "(default: it plays against itself)"), READ] = ()
    """Record files of finished games."""
    rules: options.RulesText = ""
    own_games: Annotated[Whole, options.without("games"), Field(ge=2)] = 400
    """Games that it plays against itself where no file is given."""
    own_simulations: Annotated[Whole, options.without("games"), Field(ge=2)] = 32
    """Simulations of a move in those games."""
    opening_plies: Annotated[Count, options.without("games")] = 4
    """Random plies that each of those games begins with."""
    positions: Annotated[Whole, Field(ge=2)] = 4000
    """Positions that are searched, drawn from all games."""
    seed: RandomSeed = 0
    card: Flag = False
    """Write the calibration into the card of the exported folder or of the model."""
    json: Written = None
    """File to write the figures to, as JSON, which `review --calibration` reads."""
    png: options.Picture = None
    """File to draw the reliability curves to: .png, .svg or .pdf."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.players import rules_for
        from train.checkpoints.exported import CALIBRATION_KEY, add_to_card
        from train.data.record_dataset import read_recorded_games
        from train.review import own_games, reliability
        from train.review.player import card_folder, make_analysis_player
        from train.runtime.display import Display
        from train.runtime.errors import check_two_players
        from train.runtime.interrupts import follow

        folder = card_folder(self.player) if self.card else None
        rules = rules_for([self.player], self.rules)
        check_two_players(rules, "calibrate")
        player, display = make_analysis_player(self.player, rules), Display()
        simulations = player.search.simulations
        with follow(display, answer="the positions searched so far are measured") as work:
            if self.games:
                recorded = read_recorded_games(self.games, rules, keys=())
            else:
                with display.task("own games", self.own_games, "games") as task:
                    recorded = own_games.play_own_games(
                        player,
                        games=self.own_games,
                        simulations=self.own_simulations,
                        opening_plies=self.opening_plies,
                        seed=self.seed,
                        on_progress=task,
                    )
            plies = sum(len(record.actions) for record in recorded.records)
            total = min(self.positions, plies) * simulations
            with display.task("searching positions", total, "simulations") as task:

                def on_progress(done: int) -> None:
                    if done >= LEAST_MEASURED * simulations:
                        work.should_stop.keeps_work()
                    task(done)

                measured = reliability.measure_reliability(
                    player,
                    recorded,
                    positions=self.positions,
                    seed=self.seed,
                    on_progress=on_progress,
                    should_stop=work.should_stop,
                )
        display.console.print(measured.table())
        options.write_json(self.json, measured.to_dict())
        if self.png is not None:
            with sparing(self.png):
                measured.draw(self.png)
            options.say_written(self.png, "reliability curves")
        if folder is not None and not work.should_stop():
            add_to_card(folder, {CALIBRATION_KEY: measured.calibration._asdict()})
            options.say_written(folder / "card.json", "calibration")
        kept = "the positions searched so far are measured; the same command starts anew"
        return options.exit_code(work.should_stop(), kept)
