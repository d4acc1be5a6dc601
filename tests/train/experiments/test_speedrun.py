"""The speedrun: a record is what its logs and games say; one that was tampered with is refused."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import train
from train.config import read_config
from train.data.record_dataset import Examples
from train.experiments import pages, speedrun_checks, speedrun_records
from train.experiments.speedrun_records import CONFIG, LOG, MATCH, RECORD, SeedFigures
from train.runtime import files
from train.runtime.errors import UsageError
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record

KEPT = pages.DATA / "speedrun" / "quickstart"
OPPONENT = speedrun_records.GOALS["cpu"].opponent
RECIPE = """
rules = "wallzero-4stone"
iterations = 3
network = { blocks = "W", width = 8, planes = "BT" }
search = { simulations = 4 }
selfplay = { boards = 16, plies = 32, full_search_prob = 0.25, cheap_simulations = 2 }
learner = { batch = 8, steps = 2 }
"""


@pytest.fixture
def copy(tmp_path) -> Path:
    return Path(shutil.copytree(KEPT, tmp_path / "record"))


def told(folder: Path, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    """Change what a record tells of its seeds, its means made to agree."""
    fields = json.loads((folder / RECORD).read_text("utf-8"))
    change(fields["seeds"])
    own = {key: fields[key] for key in fields if key not in ("seeds", "means", "win_rate")}
    seeds = tuple(SeedFigures(**seed) for seed in fields["seeds"])
    made = speedrun_records.Record(seeds=seeds, **own)
    (folder / RECORD).write_text(json.dumps(made.to_dict()), "utf-8")


def log(folder: Path, change: Callable[[list[dict[str, Any]]], Any], seed: int = 0) -> None:
    """Change the rows of a seed's log."""
    rows = speedrun_records.read_log(folder, seed)
    change(rows)
    files.write_lines(folder / LOG.format(seed), [json.dumps(row) for row in rows])


def games(
    folder: Path, change: Callable[[list[Record]], Sequence[Record] | None], seed: int = 0
) -> None:
    """Change the games of a seed, and tell the counts that they give."""
    path = folder / MATCH.format(seed)
    played = list(records.read(path))
    played = list(change(played) or played)
    records.write(path, played)
    counts = speedrun_records.counts_of(played, OPPONENT)
    told(folder, lambda seeds: seeds[seed].update(counts))


def recipe(folder: Path, old: str, new: str) -> None:
    text = (folder / CONFIG).read_text("utf-8")
    assert old in text
    (folder / CONFIG).write_text(text.replace(old, new), "utf-8")


def lost(played: Sequence[Record]) -> int:
    """The place of a game among the first half, where the learner is Red, that it lost."""
    return next(place for place, game in enumerate(played) if (game.result or (0,))[0] < 0)


def one_more_win(folder: Path) -> None:
    told(folder, lambda seeds: seeds[0].update(won=seeds[0]["won"] + 1, lost=seeds[0]["lost"] - 1))


def mean_without_its_seeds(folder: Path) -> None:
    fields = json.loads((folder / RECORD).read_text("utf-8"))
    fields["means"]["seconds"] *= 0.5
    (folder / RECORD).write_text(json.dumps(fields), "utf-8")


def fewer_evaluations(folder: Path) -> None:
    told(folder, lambda seeds: [seed.update(evaluations=1000) for seed in seeds])


def five_seeds(folder: Path) -> None:
    told(folder, lambda seeds: seeds.pop())


def an_iteration_less(folder: Path) -> None:
    log(folder, lambda rows: rows.pop())


def fewer_positions(folder: Path) -> None:
    log(folder, lambda rows: rows[3].update(positions=rows[3]["positions"] / 2))


def fewer_steps(folder: Path) -> None:
    log(folder, lambda rows: rows[-1].update(steps=1))


def trained_weights(folder: Path) -> None:
    recipe(folder, 'start_weights = ""', 'start_weights = "pretrained:wallzero-4stone"')


def a_teacher(folder: Path) -> None:
    recipe(folder, "bootstrap_iterations = 0", "bootstrap_iterations = 2")


def a_seed_twice(folder: Path) -> None:
    for name in (LOG, MATCH):
        shutil.copyfile(folder / name.format(0), folder / name.format(1))
    told(folder, lambda seeds: seeds.__setitem__(1, seeds[0] | {"seed": 1}))


def another_result(folder: Path) -> None:
    def change(played: list[Record]) -> None:
        place = lost(played)
        fields = json.loads(records.to_json(played[place])) | {"result": [1.0, -1.0]}
        played[place] = records.from_json(json.dumps(fields))

    games(folder, change)


def a_won_game_twice(folder: Path) -> None:
    def change(played: list[Record]) -> None:
        won = next(game for game in played if (game.result or (0,))[0] > 0)
        played[lost(played)] = won

    games(folder, change)


def a_lost_game_less(folder: Path) -> None:
    games(folder, lambda played: [game for game in played if game is not played[lost(played)]])


def another_opponent(folder: Path) -> None:
    def change(played: list[Record]) -> list[Record]:
        lines = [records.to_json(game).replace("wjx@64", "wjx@16") for game in played]
        return [records.from_json(line) for line in lines]

    games(folder, change)


def games_of_another_seed(folder: Path) -> None:
    shutil.copyfile(folder / MATCH.format(5), folder / MATCH.format(0))
    games(folder, lambda played: None)


def sides_swapped(folder: Path) -> None:
    """What the learner played is called the opponent's: its moves are not those of that search."""

    def change(played: list[Record]) -> list[Record]:
        names = list(played[0].players or ())
        ours = next(name for name in names if name != OPPONENT)
        other = {ours: OPPONENT, OPPONENT: ours}
        swapped = []
        for game in (*played[len(played) // 2 :], *played[: len(played) // 2]):
            fields = json.loads(records.to_json(game))
            fields["players"] = [other[name] for name in fields["players"]]
            swapped.append(records.from_json(json.dumps(fields)))
        return swapped

    games(folder, change)


TAMPERED = {
    one_more_win: "seed 0: won is",
    mean_without_its_seeds: "means are not those of its seeds",
    fewer_evaluations: "seed 0: evaluations is 1000, but",
    five_seeds: "the seeds are",
    an_iteration_less: "its iterations are not 1 to",
    fewer_positions: "iteration 4: positions cannot be",
    fewer_steps: "steps cannot be 1",
    trained_weights: "start_weights must be empty",
    a_teacher: "bootstrap_iterations must be 0",
    a_seed_twice: "the same training's",
    another_result: "result: the record says",
    a_won_game_twice: "is not the random one of this seed's opening",
    a_lost_game_less: "399 finished games, not 400",
    another_opponent: f"the players are not one against {OPPONENT}",
    games_of_another_seed: "is not the random one of this seed's opening",
    sides_swapped: "would have played",
}


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(tamper, marks=[pytest.mark.slow] if tamper is sides_swapped else [])
        for tamper in TAMPERED
    ],
    ids=lambda tamper: tamper.__name__,
)
def test_a_record_that_was_tampered_with_is_refused(copy, tamper, monkeypatch):
    search_again(800, monkeypatch)
    tamper(copy)
    with pytest.raises(UsageError, match=TAMPERED[tamper].replace("(", r"\(")):
        train.speedrun("verify", copy)


def search_again(count: int, monkeypatch) -> None:
    """Search only so many of the opponent's moves of a seed; all of them take minutes."""
    search = speedrun_checks._moves_of

    def moves(player: Any, examples: Examples, chosen: np.ndarray) -> np.ndarray:
        slots = np.array(examples.slot)[chosen]
        if count:
            slots[:count] = search(player, examples, chosen[:count])
        return slots

    monkeypatch.setattr(speedrun_checks, "_moves_of", moves)


@pytest.mark.parametrize("path", sorted(KEPT.parent.glob("*/")), ids=lambda path: path.name)
def test_the_kept_records_are_verified(path, monkeypatch):
    search_again(0, monkeypatch)
    found = train.speedrun("verify", path)
    assert found.is_passed
    assert "The training itself cannot be seen" in found.notes[0]


def test_the_config_is_the_recipe_of_the_newest_record():
    found = {folder: speedrun_records.read_record(folder) for folder in KEPT.parent.iterdir()}
    for_cpu = [folder for folder, record in found.items() if record.goal == "cpu"]
    newest = min(for_cpu, key=lambda folder: found[folder].mean("evaluations"))
    ours = read_config(pages.ROOT / "configs/speedrun.toml")
    kept = read_config(newest / CONFIG)
    assert speedrun_records.plain_recipe(replace(ours, name=kept.name)) == kept


@pytest.mark.slow
def test_the_opponent_searches_its_moves_again(monkeypatch):
    search_again(800, monkeypatch)
    record = speedrun_records.read_record(KEPT)
    speedrun_checks.check_match(KEPT, record, record.seeds[0])


@pytest.mark.slow
def test_a_recipe_is_run_verified_and_run_again(tmp_path, monkeypatch):
    for module in (speedrun_records, speedrun_checks):
        monkeypatch.setattr(module, "GAMES", 4)
        monkeypatch.setattr(module, "SEEDS", 2)
    monkeypatch.setattr(speedrun_records, "SIMULATIONS", 2)
    quick = speedrun_records.GOALS["cpu"]._replace(opponent="heuristic-search:wjx@2")
    monkeypatch.setitem(speedrun_records.GOALS, "cpu", quick)
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE, "utf-8")
    made = train.speedrun("run", path, out=tmp_path / "out", about="tiny")
    assert not made.is_passed  # It has hardly learned.
    folder = tmp_path / "out" / speedrun_records.FOLDER
    again = train.speedrun("run", path, out=tmp_path / "out", about="tiny")
    assert again.record == made.record
    verified = train.speedrun("verify", folder, rerun=1)
    assert verified.record.seeds == made.record.seeds
    assert "weights and games are the same to the bit" in verified.notes[-1]
    told(folder, lambda seeds: seeds[1].update(weights="0" * 32))
    assert "the weights differ" in train.speedrun("verify", folder, rerun=1).notes[-1]
