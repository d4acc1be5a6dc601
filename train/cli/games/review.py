"""The commands that review games and calibrate win chances."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from train.cli.common import options
from train.cli.common.unused import refuse_unused
from train.config import SHIPPED
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts
from wallgo_jax.cli.parsing import Flag

if TYPE_CHECKING:
    from train.data.record_dataset import RecordedGames
    from train.players.basic import Player
    from train.review.reliability import Reliability
    from train.runtime.display import Display

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

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="GAME")]
    """A record file, a file of moves or of an HKOI code, `-` for standard input, or the moves."""
    player: Annotated[
        str,
        tyro.conf.arg(
            metavar="PLAYER",
            help_behavior_hint="(default: a model that ships for the rules, else "
            f"heuristic-search:wjx, with {DEFAULT_SIMULATIONS} simulations)",
        ),
    ] = ""
    """Player that searches, named as in docs/players.md."""
    rules: Annotated[
        str,
        tyro.conf.arg(
            metavar="RULES",
            help_behavior_hint=f"(default: the game's, else {options.DEFAULT_RULES})",
        ),
    ] = ""
    """Rules of moves and codes: preset's name, JSON object, or file (JSON or TOML)."""
    game: int = 1
    """Number of the game in a record file, from 1."""
    transfer: Flag = False
    """Let a network review rules that it was not trained on."""
    calibration: options.OptionalFile = None
    """File that `calibrate --json` wrote, in place of the calibration in the model's card."""
    siblings: Annotated[int | None, tyro.conf.arg(metavar="PLY", help_behavior_hint="")] = None
    """Ply whose step is compared with each of its walls."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("out/review.html")
    """Page to write."""
    json: Annotated[
        Path | None,
        tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: beside the page)"),
    ] = None
    """File to write the figures to, as JSON."""
    records: options.OptionalFile = None
    """File to write the game's record to, with the value of each ply, as the replay page shows."""
    theme: Theme = "auto"
    """Colours of the page; `auto` is as the reader's system is set."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.reviews import load_source
        from train.review.game_review import review_game
        from train.review.page import draw_review
        from train.review.player import player_for_game
        from train.review.siblings import compare_siblings
        from train.runtime.display import Display
        from train.runtime.files import replace_text
        from wallgo_jax.cli.sources import SourceRequest
        from wallgo_jax.formats import records

        if self.out.suffix.lower() != ".html":
            raise UsageError(f"--out {self.out}: the page's ending must be .html")
        default = options.read_rules(options.DEFAULT_RULES)
        request = SourceRequest(self.source, self.rules, game=self.game, default_rules=default)
        loaded = load_source(request)
        played = loaded.game
        figures = self.json or self.out.with_suffix(".json")
        read = self.source, self.rules, self.calibration
        options.check_files(self.out, figures, self.records, inputs=read)
        player = player_for_game(
            played, self.player, transfer=self.transfer, calibration=self.calibration
        )
        display, step = Display(), None
        live = sum(not state.position.terminated for state in played.states)
        total, title = live * player.search.simulations, f"searching {len(played.states)} positions"
        with display:
            if self.siblings is not None:
                with display.task("comparing walls", 0, "simulations") as task:
                    step = compare_siblings(player, played, self.siblings, on_progress=task)
            with display.task(title, total, "simulations") as task:
                review = review_game(player, played, players=loaded.players, on_progress=task)
        display.console.print(review.tables())
        if step is not None:
            display.console.print(step.table())
        replace_text(self.out, draw_review(review, theme=self.theme, siblings=step))
        plies = len(played.actions)
        options.say_written(self.out, f"a game of {plies} {'ply' if plies == 1 else 'plies'}")
        more = {} if step is None else {"siblings": step.to_dict()}
        options.write_json(figures, review.to_dict() | more)
        if self.records is not None:
            records.write(self.records, [review.record])
            options.say_written(self.records, "1 game")
        return 0


@dataclasses.dataclass(frozen=True)
class Calibrate:
    """Measure whether a player's win chances come true, before and after search, and fit them."""

    EXAMPLES = (
        "calibrate pretrained:wallzero-4stone@256 --png out/reliability.png",
        "calibrate models/mine@64 --games out/games.jsonl.gz --card",
    )

    player: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(metavar="[PLAYER]", help_behavior_hint=f"(default: {SHIPPED})"),
    ] = SHIPPED
    """Player that searches, named as in docs/players.md."""
    games: Annotated[
        tuple[Path, ...],
        tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: it plays against itself)"),
    ] = ()
    """Record files of finished games."""
    rules: options.RulesText = ""
    """Preset's name, JSON object, or file (JSON or TOML)."""
    own_games: int = 400
    """Games that it plays against itself where no file is given."""
    own_simulations: int = 32
    """Simulations of a move in those games."""
    opening_plies: int = 4
    """Random plies that each of those games begins with."""
    positions: int = 4000
    """Positions that are searched, drawn from all games."""
    seed: int = 0
    """Random seed."""
    card: Flag = False
    """Write the calibration into the card of the exported folder or of the model."""
    json: options.OptionalFile = None
    """File to write the figures to, as JSON, which `review --calibration` reads."""
    png: options.OptionalFile = None
    """File to draw the reliability curves to: .png, .svg or .pdf."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.review import reliability
        from train.review.player import card_folder, make_analysis_player
        from train.runtime.display import Display

        if self.games:
            of_own_games = ("own_games", "own_simulations", "opening_plies")
            refuse_unused(self, *of_own_games, where="with --games")
        options.check_seed("calibrate", self.seed)
        for name in ("own_games", "own_simulations", "positions"):
            if getattr(self, name) < 2:
                raise UsageError(f"calibrate: {name} ({getattr(self, name)}) must be at least 2")
        if self.opening_plies < 0:
            raise UsageError(
                f"calibrate: opening_plies ({self.opening_plies}) must not be negative"
            )
        folder = card_folder(self.player) if self.card else None
        options.check_pictures(self.png)
        options.check_files(self.json, self.png, inputs=(self.rules, *self.games))
        rules = options.read_rules_for(self.rules, [self.player])
        if rules.players != 2:
            raise UsageError("calibrate: win chances are calibrated for two players")
        player = make_analysis_player(self.player, rules)
        display = Display()
        answer = "the positions searched so far are measured"
        with display, interrupts(answer, show=display.note) as is_interrupted:
            recorded = self._games(player, display)
            plies = sum(len(record.actions) for record in recorded.records)
            total = min(self.positions, plies) * player.search.simulations
            with display.task("searching positions", total, "simulations") as task:

                def on_progress(simulations: int) -> None:
                    if simulations >= LEAST_MEASURED * player.search.simulations:
                        is_interrupted.keeps_work()
                    task(simulations)

                measured = reliability.measure_reliability(
                    player,
                    recorded,
                    positions=self.positions,
                    seed=self.seed,
                    on_progress=on_progress,
                    should_stop=is_interrupted,
                )
        display.console.print(measured.table())
        self._write(measured, None if is_interrupted() else folder)
        return EXIT_INTERRUPTED if is_interrupted() else 0

    def _write(self, measured: "Reliability", folder: Path | None) -> None:
        """Write what was asked for, the calibration into the card in a folder."""
        from train.checkpoints.calibration import CARD_KEY
        from train.checkpoints.exported import add_to_card

        if self.json is not None:
            options.write_json(self.json, measured.to_dict())
        if self.png is not None:
            measured.draw(self.png)
            options.say_written(self.png, "reliability curves")
        if folder is not None:
            add_to_card(folder, {CARD_KEY: measured.calibration._asdict()})
            options.say_written(folder / "card.json", "calibration")

    def _games(self, player: "Player", display: "Display") -> "RecordedGames":
        """The games of the files, or else those that the player plays against itself."""
        from train.review.own_games import play_own_games, read_games

        if self.games:
            return read_games(self.games, player)
        with display.task("own games", self.own_games, "games") as task:
            return play_own_games(
                player,
                games=self.own_games,
                simulations=self.own_simulations,
                opening_plies=self.opening_plies,
                seed=self.seed,
                on_progress=task,
            )
