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
    from train.review.analyst import Analyst
    from train.review.reliability import Reliability
    from train.runtime.display import Display
    from wallgo_jax.cli.sources import LoadedGame

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
        from train.review import game_review, siblings, table
        from train.review.analyst import analyst_of_game
        from train.review.page import draw_review
        from train.runtime.display import Display
        from train.runtime.files import replace_text
        from wallgo_jax.formats import records

        if self.out.suffix.lower() != ".html":
            raise UsageError(f"--out {self.out}: the page's ending must be .html")
        loaded = self._load()
        played = loaded.game
        if not played.actions:
            raise UsageError(f"review: {self.source}: the game has no move")
        figures = self.json or self.out.with_suffix(".json")
        read = self.source, self.rules, self.calibration
        options.check_files(self.out, figures, self.records, inputs=read)
        analyst = analyst_of_game(
            played, self.player, transfer=self.transfer, calibration=self.calibration
        )
        display, step = Display(), None
        total = analyst.search.simulations * sum(
            not state.position.terminated for state in played.states
        )
        with display:
            if self.siblings is not None:
                with display.task("comparing walls", 0, "simulations") as task:
                    step = siblings.compare_siblings(
                        analyst, played, self.siblings, on_progress=task
                    )
            with display.task(
                f"searching {len(played.states)} positions", total, "simulations"
            ) as task:
                found = game_review.review_game(
                    analyst, played, players=loaded.players, on_progress=task
                )
        display.console.print(table.review_tables(found))
        record = game_review.review_record(found)
        if step is not None:
            display.console.print(table.siblings_table(step))
            record["siblings"] = siblings.siblings_record(step, played.grid)
        replace_text(self.out, draw_review(found, theme=self.theme, siblings=step))
        options.say_written(
            self.out,
            f"a game of {len(played.actions)} {'ply' if len(played.actions) == 1 else 'plies'}",
        )
        options.write_json(figures, record)
        if self.records is not None:
            records.write(self.records, [game_review.record_of(found)])
            options.say_written(self.records, "1 game")
        return 0

    def _load(self) -> "LoadedGame":
        from wallgo_jax.cli.sources import SourceRequest, read_games

        request = SourceRequest(
            self.source,
            self.rules,
            game=max(self.game, 1),
            default_rules=options.read_rules(options.DEFAULT_RULES),
        )
        try:
            if self.game < 1:
                raise ValueError(f"--game {self.game}: games are numbered from 1")
            return next(read_games(request))
        except ValueError as error:
            raise UsageError(" ".join(str(error).split())) from None
        except OSError as error:
            raise UsageError(f"{self.source}: cannot be read: {error.strerror}") from None


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
        from train.review.analyst import card_folder, make_analyst
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
        analyst = make_analyst(self.player, rules)
        display = Display()
        answer = "the positions searched so far are measured"
        with display, interrupts(answer, show=display.note) as is_interrupted:
            recorded = self._games(analyst, display)
            plies = sum(len(record.actions) for record in recorded.records)
            total = min(self.positions, plies) * analyst.search.simulations
            with display.task("searching positions", total, "simulations") as task:

                def on_progress(simulations: int) -> None:
                    if simulations >= LEAST_MEASURED * analyst.search.simulations:
                        is_interrupted.keeps_work()
                    task(simulations)

                found = reliability.measure_reliability(
                    analyst,
                    recorded,
                    positions=self.positions,
                    seed=self.seed,
                    on_progress=on_progress,
                    should_stop=is_interrupted,
                )
        display.console.print(reliability.reliability_table(found))
        self._write(found, None if is_interrupted() else folder)
        return EXIT_INTERRUPTED if is_interrupted() else 0

    def _write(self, found: "Reliability", folder: Path | None) -> None:
        """Write what was asked for, the calibration into the card in a folder."""
        from train.checkpoints import calibration
        from train.checkpoints.exported import add_to_card
        from train.review import reliability

        if self.json is not None:
            options.write_json(self.json, reliability.reliability_record(found))
        if self.png is not None:
            reliability.draw_reliability(found, self.png)
            options.say_written(self.png, "reliability curves")
        if folder is not None:
            add_to_card(folder, {calibration.CARD_KEY: calibration.to_dict(found.calibration)})
            options.say_written(folder / "card.json", "calibration")

    def _games(self, analyst: "Analyst", display: "Display") -> "RecordedGames":
        """The games of the files, or else those that the analyst plays against itself."""
        from train.review.own_games import play_own_games, read_games

        if self.games:
            return read_games(self.games, analyst)
        with display.task("own games", self.own_games, "games") as task:
            return play_own_games(
                analyst,
                games=self.own_games,
                simulations=self.own_simulations,
                opening_plies=self.opening_plies,
                seed=self.seed,
                on_progress=task,
            )
