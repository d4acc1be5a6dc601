"""Files of late positions grow and resume, and a player's accuracy in them is exact."""

import dataclasses
import gzip
import json
import random
import re
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.support.learner.commands import command, complaint
from tests.support.reference.games import random_game
from tests.support.refusals import refusal
from tests.train.solver.test_solver import game_after
from train.analysis.accuracy import late_accuracy
from train.analysis.late_positions import (
    load_late,
    plies_left,
    read_late,
    spread,
    write_late,
)
from train.analysis.late_proofs import (
    ProofOptions,
    proofs_table,
    prove_games,
    telling_positions,
)
from train.data.record_dataset import RecordedGames, read_recorded_games
from train.players.basic import Player, act_by, make_random_player
from train.runtime.errors import UsageError
from train.search.search import SearchResult
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules

RULES = Rules(
    size=4,
    stones=2,
    start=((0, 0, 0), (3, 3, 0), (0, 3, 1), (3, 0, 1)),
    order=(),
    tie=("region",),
)
OPTIONS = ProofOptions(positions=100, per_game=2, max_plies_left=4, node_limit=5_000, seed=0)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> RecordedGames:
    """Six random games."""
    rng, path = random.Random(2), tmp_path_factory.mktemp("games") / "games.jsonl"
    games = [random_game(rng, RULES.to_dict(), grid=4) for _ in range(6)]
    records.write(
        path,
        [Record(RULES, tuple(game.actions), result=tuple(game.rewards[-1])) for game in games],
    )
    return read_recorded_games([path], RULES)


@pytest.fixture(scope="module")
def late_file(recorded, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("late") / "late.jsonl"
    prove_games(recorded, path, OPTIONS)
    return path


def test_stopped_work_goes_on_to_the_same_file(recorded, late_file, tmp_path):
    path, games, whole = tmp_path / "late.jsonl", iter((False, False, True)), late_file.read_bytes()
    prove_games(recorded, path, OPTIONS, should_stop=lambda: next(games))
    assert len(read_late(path)) == 2
    prove_games(recorded, path, OPTIONS)
    assert path.read_bytes() == whole
    tried = [len(game.proven) + len(game.refused) for game in read_late(path)]
    assert tried == [2] * 6
    table = proofs_table(read_late(path))
    assert len(table.rows) > 1 and table.rows[-1][1] == "12"
    # A half-written last line is proven again, another is refused.
    *lines, last = whole.splitlines(keepends=True)
    for cut in (1, len(last) - 2):
        path.write_bytes(b"".join(lines) + last[:cut])
        prove_games(recorded, path, OPTIONS)
        assert path.read_bytes() == whole
    path.write_bytes(whole[:-1])  # all but the line feed
    prove_games(recorded, path, OPTIONS)
    assert len(read_late(path)) == 6
    path.write_bytes(b"".join([lines[0][:40], b"\n", *lines[1:], last]))
    with pytest.raises(UsageError, match=r"line 1"):
        prove_games(recorded, path, OPTIONS)


def test_a_file_does_not_go_on_with_other_options(recorded, late_file, tmp_path):
    path = tmp_path / "late.jsonl"
    path.write_bytes(late_file.read_bytes())
    for key in ("per_game", "max_plies_left", "node_limit", "seed"):
        old = getattr(OPTIONS, key)
        with pytest.raises(UsageError, match=f"line 1: {key} was {old} .* {old + 1} now"):
            prove_games(recorded, path, OPTIONS._replace(**{key: old + 1}))
        assert path.read_bytes() == late_file.read_bytes()
    prove_games(recorded, path, OPTIONS._replace(positions=1))  # another end is no other way


def test_a_file_without_options_goes_on(recorded, late_file, tmp_path):
    """As files were before lines held them; `node_limit` they have."""
    lines = [json.loads(line) for line in late_file.read_text().splitlines()]
    for fields in lines:
        del fields["options"]
    path = tmp_path / "late.jsonl"
    path.write_text("".join(json.dumps(fields) + "\n" for fields in lines[:4]))
    assert {game.options for game in read_late(path)} == {None}
    games = prove_games(recorded, path, OPTIONS._replace(seed=3))
    assert [game.options and game.options.seed for game in games] == [None] * 4 + [3] * 2
    with pytest.raises(UsageError, match=r"line 1: node_limit was 5000 .* and is 7 now"):
        prove_games(recorded, path, OPTIONS._replace(node_limit=7))
    path.write_text(json.dumps(lines[0] | {"options": {"seed": 0}}) + "\n")
    with pytest.raises(UsageError, match="line 1: options"):
        read_late(path)


def test_games_of_other_rules_are_refused(recorded, late_file, tmp_path):
    """Of the file, which is left as it is, and among those to prove."""
    other = dataclasses.replace(RULES, tie=())
    path, games = tmp_path / "late.jsonl", read_late(late_file)
    changed = games[1]._replace(record=dataclasses.replace(games[1].record, rules=other))
    write_late(path, [games[0], changed])
    before = path.read_bytes()
    assert refusal(prove_games, recorded, path, OPTIONS) == (
        f"{path}, line 2: its rules (custom) have tie [], not ['region']"
    )
    assert path.read_bytes() == before
    first, second, *more = recorded.records
    records.write(path, [first, dataclasses.replace(second, rules=other), *more])
    with pytest.raises(UsageError, match=r"game 2: its rules .* tie"):
        read_recorded_games([path], keys=())


def test_damaged_files_are_one_line(late_file, tmp_path):
    """A stream that is broken inside, and keys that no finished game has."""
    path = tmp_path / "late.jsonl.gz"
    data = bytearray(gzip.compress(late_file.read_bytes(), mtime=0))
    data[10] = 0xFF  # the first block's kind, which no stream has
    path.write_bytes(data)
    for read in (read_late, lambda path: read_recorded_games([path])):
        assert re.search("late.jsonl.gz.*(cannot be read|damaged)", refusal(read, path))
    fields = json.loads(late_file.read_text().splitlines()[0])
    plain = tmp_path / "late.jsonl"
    for damage, said in (
        ({"late": [{"ply": float("inf"), "value": 1, "best": "1"}]}, "late.0.ply: "),
        ({"result": None}, "key 'late': ply .* of a finished game"),
    ):
        plain.write_text(json.dumps(fields | damage) + "\n")
        assert re.search(f"line 1: {said}", refusal(load_late, plain))


def test_plays_of_a_file_are_held_against_the_legal_ones(late_file, tmp_path):
    """By the slow referee, in the second position of the second game with one."""
    games, path = read_late(late_file), tmp_path / "late.jsonl"
    number = [n for n, game in enumerate(games) if len(game.proven) == 2][1]
    game, (first, second) = games[number], games[number].proven
    referee = game_after(RULES, game.record.actions[: second.ply])
    cells = [row * 4 + column for row, column in referee.board.stones[referee.player]]
    legal = {cells.index(action // 52) * 52 + action % 52 for action in referee.turns()}
    illegal = min(set(range(104)) - legal)
    for wrong in (
        second._replace(best=(illegal, 103)),
        second._replace(best=(max(legal), 1040)),
        second._replace(value=-1, best=(min(legal),)),
        second._replace(margin=1, margins=(1,)),
    ):
        damaged = game._replace(proven=(first, wrong))
        write_late(path, [*games[:number], damaged, *games[number + 1 :]])
        assert refusal(load_late, path) == (
            f"{path}, game {number + 1}, ply {second.ply}: 'best' or 'margins' do not fit the "
            f"{len(legal)} legal plays"
        )


def test_sample_is_even_and_the_same_each_time(late_file, tmp_path):
    games = read_late(late_file)
    paths = [tmp_path / name for name in ("a.jsonl.gz", "b.jsonl.gz")]
    for path in paths:
        write_late(path, spread(games, 4))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    chosen = read_late(paths[0])
    left = [plies_left(game, each.ply) for game in chosen for each in game.proven]
    assert len(left) == 4
    assert len(set(left)) == min(
        4, len({plies_left(game, each.ply) for game in games for each in game.proven})
    )


def test_sample_prefers_positions_in_which_a_play_can_err(late_file):
    games, late = read_late(late_file), load_late(late_file)
    places = [(index, each.ply) for index, game in enumerate(games) for each in game.proven]
    telling = {
        place
        for place, best in zip(places, late.best, strict=True)
        if best.sum() < len(game_after(RULES, games[place[0]].record.actions[: place[1]]).turns())
    }
    assert 0 < len(telling) < len(places)
    assert telling_positions(games) == telling
    left = {place: plies_left(games[place[0]], place[1]) for place in places}
    wanted = {left[place] for place in telling}
    chosen = spread(games, len(set(left.values())), preferred=telling)
    numbers = {game.record.actions: index for index, game in enumerate(games)}
    taken = {(numbers[game.record.actions], each.ply) for game in chosen for each in game.proven}
    assert {left[place] for place in taken & telling} == wanted


def test_accuracy_counts_kept_results(late_file):
    late = load_late(late_file)
    first_best = late.best.argmax(axis=1)

    def act(variables, states, key):
        return jax.numpy.asarray(variables)

    kept = late_accuracy(
        Player("best", first_best, act), late, batch=len(late.value), is_quiet=True
    )
    assert kept.kept.all()
    worst = np.where(late.best.all(axis=1), 0, late.best.argmin(axis=1))
    lost = late_accuracy(Player("worst", worst, act), late, batch=len(late.value), is_quiet=True)
    assert not lost.kept[lost.can_err].any()
    assert (kept.given_away[~np.isnan(kept.given_away)] >= 0).all()
    known = ~np.isnan(late.margins).all(axis=1)
    assert known.any()
    assert (np.isnan(kept.given_away) == ~known).all()
    # The first play that keeps a draw or a win may lead by less than the best one.
    most = np.nanmax(late.margins[known], axis=1)
    assert (kept.given_away[known] == most - late.margins[known, first_best[known]]).all()
    figures = lost.summary()["positions"]["all"]
    assert kept.summary()["positions"]["all"]["total_with_margins"] == known.sum()
    assert figures["total"] == len(late.value)
    assert figures["total_where_one_can_err"] == lost.can_err.sum()


def test_values_agree_with_the_proven_ones_where_neither_is_zero(late_file):
    late = load_late(late_file)
    says = np.where(np.arange(len(late.value)) % 3 == 0, 0.5, -0.5)

    def search(variables, states, key):
        slots = jax.vmap(actions.legal_slots)(states).argmax(axis=-1)
        nothing = np.zeros(len(slots), np.float32)
        return SearchResult(slots, nothing, variables, nothing, nothing)

    result = late_accuracy(
        Player("half", says, act_by(search, 0.0), search), late, batch=len(says), is_quiet=True
    )
    right = [(said > 0) == (value > 0) for said, value in zip(says, late.value, strict=True)]
    decided = late.value != 0
    np.testing.assert_array_equal(result.agreed[decided], np.array(right)[decided])
    assert np.isnan(result.agreed[~decided]).all()
    figures = result.summary()["positions"]
    assert figures["all"]["total_with_values"] == decided.sum()
    assert figures["all"]["agreed"] == np.mean(np.array(right)[decided])
    assert sum(each["total"] for name, each in figures.items() if "to" in name) == len(says)
    silent = late_accuracy(make_random_player(), late, batch=len(says), is_quiet=True)
    assert silent.summary()["positions"]["all"]["total_with_values"] == 0


def test_a_player_is_measured_in_a_file(late_file, tmp_path):
    said = command("accuracy", "random", "--late", late_file, "--json", tmp_path / "a.json")
    assert said.code == 0
    assert "plies left" in said.out


def test_what_is_measured_of_several_players_is_written_after_each(late_file, tmp_path):
    words = ["--late", late_file, "--json", tmp_path / "a.json"]
    assert "rnd" in complaint(command("accuracy", "random", "rnd", *words))
    (figures,) = json.loads((tmp_path / "a.json").read_text())
    assert figures["player"] == "random"


def test_positions_are_proven(recorded, tmp_path):
    games, out = tmp_path / "games.jsonl", tmp_path / "late.jsonl"
    records.write(games, recorded.records)
    words = ["--positions", "1", "--max-plies-left", "2"]
    said = command("prove", games, "--late", out, *words)
    assert (said.code, said.err) == (0, "")
    assert "late positions proven" in said.out and read_late(out)
