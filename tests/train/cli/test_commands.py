"""The command line end to end, on the tiny run."""

import contextlib
import dataclasses
import io
import json
import re
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tensorboardX.proto.event_pb2 import Event

from tests.support import compiling, tiny
from tests.support.reference.referee import Game
from train.__main__ import main
from train.analysis.corridors import read_corridors
from train.arena.match import wilson_interval
from train.cli.commands import CONFIGURED
from train.cli.options import EXIT_INTERRUPTED, EXIT_USAGE
from train.config import RunConfig, config_to_dict
from train.loop import iteration, training
from wallgo_jax.formats import records
from wallgo_jax.notation import parse_moves

ROOT = Path(__file__).parents[3]
CONFIG = tiny.config()
RULES = json.dumps(tiny.RULES.to_dict())
MATCH = ["--rules", RULES, "--games", "20", "--batch", "20", "--seed", "4"]


class Said(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def command(*words: object) -> Said:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return Said(code, out.getvalue(), err.getvalue())


def complaint(said: Said) -> str:
    """The one line of a usage error."""
    assert said.code == EXIT_USAGE == 2
    assert said.err.startswith("error: ")
    assert said.err.endswith("\n")
    assert len(said.err.splitlines()) == 1
    return said.err.removeprefix("error: ").rstrip()


def read_rows(directory: Path) -> list[dict]:
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]


def read_scalars(directory: Path) -> dict[str, dict[int, float]]:
    """The values of TensorBoard's event files by name and step."""
    found: dict[str, dict[int, float]] = {}
    for path in sorted((directory / "tensorboard").iterdir()):
        data, place = path.read_bytes(), 0
        while place < len(data):
            # A record is a length, its checksum, an event, its checksum.
            (length,) = struct.unpack_from("<Q", data, place)
            event = Event.FromString(data[place + 12 : place + 12 + length])
            place += 16 + length
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()
    }


@pytest.fixture(autouse=True)
def shared_programs(monkeypatch):
    monkeypatch.setattr(training, "make_programs", tiny.shared_programs)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def finished(runs) -> tuple[Path, Said]:
    """A run to its end: its directory and what it said."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "make_programs", tiny.shared_programs)
        said = command("run", tiny.PATH, "--runs", runs)
    return runs / CONFIG.name, said


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    """A directory of runs with a copy of the finished one, to be changed."""
    shutil.copytree(finished[0], tmp_path / CONFIG.name)
    return tmp_path


def test_run_leaves_everything(finished):
    directory, said = finished
    assert said.code == 0
    assert said.err == ""
    names = {path.name for path in directory.iterdir()}
    files = {"config.json", "run.json", "metrics.jsonl", "evaluation.json", "game.txt"}
    assert names == files | {"checkpoints", "resume", "tensorboard"}
    assert json.loads((directory / "config.json").read_text()) == config_to_dict(CONFIG)
    assert sorted(path.name for path in (directory / "checkpoints").iterdir()) == ["4", "6"]
    assert sorted(path.name for path in (directory / "resume").iterdir()) == ["4", "6"]


def test_metrics_have_a_row_an_iteration(finished):
    rows = read_rows(finished[0])
    assert [row["iteration"] for row in rows] == [0, 1, 2, 3, 4, 5]
    for row in rows:
        assert row["positions"] == CONFIG.selfplay.boards * CONFIG.selfplay.plies
        assert row["games"] > 0
        # A game on 3x3 has two placements and at most a wall on each of the twelve inner edges.
        assert 3 <= row["mean_length"] <= 14
        assert 0 <= row["red_win_rate"] <= 1
        assert row["games_per_second"] > 0
    learned = [row for row in rows if "loss" in row]
    assert rows[-1] in learned
    for row in learned:
        total = row["policy_loss"] + row["value_loss"] + 0.5 * row["ownership_loss"]
        assert row["loss"] == pytest.approx(total, rel=1e-4)
        assert row["replay_rows"] > 0
    assert [row["iteration"] for row in rows if "win_rate" in row] == [2]
    assert rows[2]["opponent"] == "random"
    assert rows[2]["matches"] == {"random": rows[2]["win_rate"]}


def test_tensorboard_has_the_same_numbers(finished):
    rows, scalars = read_rows(finished[0]), read_scalars(finished[0])
    for name in ("games", "policy_loss", "win_rate"):
        expected = {row["iteration"]: row[name] for row in rows if name in row}
        assert scalars[name] == pytest.approx(expected, rel=1e-6)
    assert scalars["win_rate/random"] == scalars["win_rate"]


def test_evaluation_is_complete(finished):
    record = json.loads((finished[0] / "evaluation.json").read_text())
    (match,) = record.pop("matches")
    assert record == {"seed": 7, "iterations": 6, "simulations": 2, "opening_plies": 0}
    assert (match["first"], match["second"], match["rules"]) == ("tiny@2", "random", "custom")
    assert match["games"] == match["wins"] + match["draws"] + match["losses"] == 40
    assert match["win_rate"] == pytest.approx((match["wins"] + match["draws"] / 2) / 40)
    assert match["interval_95"] == pytest.approx(wilson_interval(match["win_rate"], 40))
    both = (match["win_rate_as_red"] + match["win_rate_as_blue"]) / 2
    assert match["win_rate"] == pytest.approx(both)
    own, other = match["territory"]
    assert 0 < own + other <= 9
    assert match["territory_ratio"] == pytest.approx(own / other)


def test_table_is_printed(finished):
    directory, said = finished
    match = json.loads((directory / "evaluation.json").read_text())["matches"][0]
    out = " ".join(said.out.split())
    for part in (
        "tiny@2 on custom",
        "against random",
        f"{match['wins']}, {match['draws']}, {match['losses']}",
        f"{match['win_rate']:.2%}",
        f"{match['interval_95'][0]:.1%} to {match['interval_95'][1]:.1%}",
        f"distinct games │ {match['distinct_games']} │",
        "seed 7 · 2 simulations",
    ):
        assert part in out
    for number in range(1, 7):
        assert f"\niteration {number}: " in f"\n{said.out}"


def test_game_is_one_of_the_referee(finished):
    moves, board = (finished[0] / "game.txt").read_text().split("\n\n", 1)
    game = Game(tiny.RULES.to_dict())
    for move in parse_moves(moves, grid=3):
        assert move.player == game.player
        assert move.action in game.legal()
        game.act(move.action)
    assert game.over
    assert f"Territory: Red {game.territory()[0]}, Blue {game.territory()[1]}." in board


def test_run_without_a_file_is_the_quickstart(monkeypatch, tmp_path):
    asked = []

    def train(config, runs, *, resume):
        asked.append((config, runs, resume))
        return True

    monkeypatch.setattr(training, "train", train)
    assert command("run").code == 0
    assert command("run", "--resume", "--runs", tmp_path, "--seed", "3").code == 0
    quickstart = RunConfig()
    changed = dataclasses.replace(quickstart, seed=3)
    assert asked == [(quickstart, Path("runs"), False), (changed, tmp_path, True)]


def test_existing_run_is_refused_and_left_alone(finished):
    directory = finished[0]
    before = contents(directory)
    message = complaint(command("run", tiny.PATH, "--runs", directory.parent))
    assert message == (
        f"{directory}: exists already; add --resume to go on with it, or choose --name"
    )
    assert contents(directory) == before


def test_resuming_a_finished_run_evaluates_it_again(finished, copy):
    directory = copy / CONFIG.name
    for name in ("evaluation.json", "game.txt"):
        (directory / name).unlink()
    said = command("run", tiny.PATH, "--runs", copy, "--resume")
    assert said.code == 0
    assert "against random" in said.out
    for name in ("evaluation.json", "game.txt", "metrics.jsonl"):
        assert (directory / name).read_text() == (finished[0] / name).read_text()


def test_resume_goes_on_without_gaps(copy):
    said = command("run", tiny.PATH, "--runs", copy, "--resume", "--iterations", "7")
    assert said.code == 0
    assert "iteration 6: " not in said.out
    assert "iteration 7: " in said.out
    directory = copy / CONFIG.name
    assert [row["iteration"] for row in read_rows(directory)] == list(range(7))
    assert set(read_scalars(directory)["games"]) == set(range(7))
    assert json.loads((directory / "config.json").read_text())["iterations"] == 7
    assert json.loads((directory / "evaluation.json").read_text())["iterations"] == 7
    assert (directory / "resume" / "7").is_dir()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--network.width", "16"], "with network.width = 8, the config says 16"),
        (["--network.blocks=2R"], "with network.blocks = 'R', the config says '2R'"),
        (["--seed", "8"], "with seed = 7, the config says 8"),
        (["--learner.learning_rate", "1"], "with learner.learning_rate = 0.003, the config says 1"),
        (["--rules.walls", "5"], "with rules.walls = None, the config says 5"),
        (["--selfplay.boards", "8"], "with selfplay.boards = 4, the config says 8"),
        (["--iterations", "5"], "has 6 iterations already, more than iterations = 5"),
    ],
)
def test_resume_with_another_config_is_refused(finished, words, reason):
    directory = finished[0]
    said = command("run", tiny.PATH, "--runs", directory.parent, "--resume", *words)
    message = complaint(said)
    assert message.startswith(f"{directory}: ")
    assert reason in message


def test_resume_of_nothing_is_refused(tmp_path):
    message = complaint(command("run", tiny.PATH, "--runs", tmp_path, "--resume"))
    assert message == f"{tmp_path}/tiny: nothing to resume; leave --resume out to start"
    (tmp_path / "tiny").mkdir()
    message = complaint(command("run", tiny.PATH, "--runs", tmp_path, "--resume"))
    assert message == f"{tmp_path}/tiny: no run of this program: it has no config.json"


def test_resume_of_a_damaged_checkpoint_is_refused(copy):
    for step in ("4", "6"):
        (copy / "tiny" / "resume" / step / "run" / "manifest.ocdbt").unlink()
    message = complaint(command("run", tiny.PATH, "--runs", copy, "--resume"))
    assert message.startswith(f"{copy}/tiny/resume/6: cannot be read: ")
    assert message.endswith("; nor can any other of 2")


def test_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    message = complaint(command("run", tiny.PATH, "--runs", tmp_path / "file"))
    assert message == f"{tmp_path}/file/tiny: cannot be made: Not a directory"


def test_unknown_opponent_is_refused_before_training(tmp_path):
    words = ["--evaluation.opponents", '["random", "grandmaster"]']
    said = command("run", tiny.PATH, "--runs", tmp_path, *words)
    assert complaint(said).startswith("player 'grandmaster': unknown; known players: ")
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []


def test_match_prints_a_table(finished):
    name = f"search:{finished[0]}@2"
    said = command("match", name, "random", *MATCH, "--opening-plies", "0")
    assert (said.code, said.err) == (0, "")
    out = " ".join(said.out.split())
    assert "against random" in out
    assert "games │ 20 │" in out
    assert "seed 4 · 0 random opening plies" in out
    won, drawn, lost = map(int, re.search(r"lost │ (\d+), (\d+), (\d+) │", out).groups())
    assert won + drawn + lost == 20
    assert f"win rate │ {(won + drawn / 2) / 20:.2%} │" in out
    low, high = wilson_interval((won + drawn / 2) / 20, 20)
    assert f"{low:.1%} to {high:.1%}" in out
    again = command("match", name, "random", *MATCH, "--opening-plies", "0")
    assert again.out == said.out


def test_match_writes_its_games_down(tmp_path):
    path = tmp_path / "new" / "games.jsonl.gz"
    said = command("match", "random", "greedy", *MATCH, "--records", path)
    assert said.code == 0
    written = list(records.read(path))
    assert len(written) == 20
    won = 0.0
    for record in written:
        game = records.replay(record)
        assert game.is_over
        assert game.rules == tiny.RULES
        seat = record.players.index("random")
        won += (game.rewards[seat] + 1) / 2
    assert sum(record.players[0] == "random" for record in written) == 10
    assert f"win rate │ {won / 20:.2%} │" in " ".join(said.out.split())


def test_describe_prints_and_writes(finished, tmp_path):
    path = tmp_path / "new" / "parts.json"
    said = command("describe", finished[0], "--batch", "4", "--json", path)
    assert (said.code, said.err) == (0, "")
    assert "block 1 R" in said.out
    assert "evaluations/s" in said.out
    figures = json.loads(path.read_text())
    assert figures["parameters"] == sum(part["parameters"] for part in figures["parts"])
    assert "evaluations/s" not in command("describe", tiny.PATH, "--no-measure").out


def test_corridors_are_written(tmp_path):
    path = tmp_path / "new" / "corridors.jsonl"
    said = command("corridors", path, "--count", "4", "--min-distance", "8", "--seed", "3")
    assert said == Said(0, "", "")
    found = read_corridors(path)
    assert found.is_connected.sum() == 2


@pytest.mark.slow
def test_probe_of_a_run(tmp_path):
    words = ["--rules.size", "5", "--network.planes", "B", "--evaluation.opponents", "[]"]
    words += ["--iterations", "1", "--network.blocks", "RT", "--selfplay.plies", "4"]
    assert command("run", tiny.PATH, "--runs", tmp_path, *words).code == 0
    rules = json.dumps({"size": 5, "stones": 1, "order": [0, 1]})
    counts = ["--count-train", "40", "--count-test", "20", "--min-distance", "6", "--seeds", "0"]
    path = tmp_path / "probe.json"
    said = command("probe", tmp_path / "tiny", "--rules", rules, *counts, "--json", path)
    assert (said.code, said.err) == (0, "")
    assert "untrained" in said.out
    assert len(json.loads(path.read_text())["rows"]) == 2


@pytest.mark.slow
def test_three_players_learn_without_matches(tmp_path):
    words = ["--rules.players", "3", "--rules.order", "[0, 1, 2]", "--evaluation.opponents", "[]"]
    words += ["--network.value", "wdl", "--iterations", "2"]
    said = command("run", tiny.PATH, "--runs", tmp_path, *words)
    assert (said.code, said.err) == (0, "")
    rows = (tmp_path / "tiny" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["iteration"] for row in rows] == [0, 1]
    assert not (tmp_path / "tiny" / "evaluation.json").exists()


def test_match_of_a_preset_named_wrong(finished):
    message = complaint(command("match", "random", "random", "--rules", "wallzero"))
    assert message.startswith("rules: unknown preset 'wallzero'; known presets: wallzero-4stone")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "command line: Expected one of {run, fit, match, accuracy, elo, tournament, export, "),
        (["describe", "nowhere"], "nowhere: no such config file or run directory"),
        (["describe", "--batch", "0", "--no-measure"], "describe: batch (0) must be at least 1"),
        (["fit"], "fit: --records names no file"),
        (["fit", "--records", "none.jsonl"], "none.jsonl: cannot be read: No such file"),
        (["fit", "--records", "x", "--stepz", "3"], "config: unknown key stepz; known keys: "),
        (
            ["attention", "nowhere", "A1", "--cell", "A1"],
            "Missing from python -m train attention: --out",
        ),
        (
            ["attention", "nowhere", "hkoi", "--cell", "A1", "--out", "a.svg"],
            "nowhere: no such run directory",
        ),
        (["attention", "nowhere", "hkoi", "--cell", "A1", "--out", "a.pdf"], "a.pdf"),
        (
            ["ownership", "nowhere", "hkoi", "--ply", "0", "--out", "a.svg"],
            "the game has not ended",
        ),
        (["corridors", "a.jsonl", "--count", "3"], "corridors: count is 3, not an even number"),
        (["corridors", "a.jsonl", "--seed", "-1"], "corridors: seed (-1) must be from 0 to"),
        (["corridors", "a.jsonl", "--rules", "playwallgo-3p"], "the rules are for 3 players"),
        (["probe"], "probe: name at least one run directory"),
        (["probe", "nowhere"], "nowhere: no such run directory"),
        (["probe", "nowhere", "--seeds", "-3"], "probe: seed (-3) must be from 0 to"),
        (["match", "random", "random", "--seed", "-1"], "match: seed (-1) must be from 0 to"),
        (["train"], "command line: Expected one of {run, fit, match, "),
        (["run", "--network.blocks", "RX"], "config: network: blocks: 'RX': 'X' at place 2"),
        (["run", "--seed", "--resume"], "command line: --seed has no value"),
        (["run", "missing.toml"], "config missing.toml: no such file"),
        (["run", tiny.PATH, "more.toml"], "command line: 'more.toml' is not an option"),
        (["run", tiny.PATH, "--iteratons", "3"], "unknown key iteratons; did you mean iterations?"),
        (
            ["run", tiny.PATH, "--learner.batch", "big"],
            "learner.batch: Input should be a valid int",
        ),
        (["run", tiny.PATH, "--network.blocks", "2(RT"], "'(' at place 2 is never closed"),
        (["run", tiny.PATH, "--seed"], "command line: --seed has no value"),
        (["match", "random"], "Its opponent. (required)"),
        (["match", "random", "rnd"], "player 'rnd': unknown; known players: random, greedy,"),
        (["match", "random", "net:nowhere"], "nowhere: no such run directory"),
        (["match", "random", "search:nowhere"], "nowhere: no such run directory"),
        (["match", "random", "search:nowhere@x"], "'x' simulations; allowed: 1 to 100000"),
        (["match", "random", "random", "--sprt", "20"], "sprt: '20' is not ELO0,ELO1"),
        (["match", "random", "pretrained:big"], "pretrained model 'big': unknown; known models"),
        (["export", "nowhere", "model"], "nowhere: no such run directory"),
        (["accuracy", "random", "--rules", '{"size": 5}'], ""),
        (["elo", "nowhere"], "nowhere"),
        (["match", "random", "random", "--games", "many"], "Error parsing --games"),
        (["match", "random", "random", "--games", "3"], "games (3) and batch (400) must be even"),
        (["match", "random", "random", "--batch", "0"], "must be even, at least 2"),
        (["match", "random", "random", "--opening-plies", "-1"], "opening_plies (-1) must not be"),
        (
            ["match", "random", "random", "--gmaes", "2"],
            "Unrecognized options: --gmaes, 2; did you mean --games?",
        ),
        (["match", "random", "random", "greedy"], "command line: Unrecognized options: greedy"),
        (
            ["match", "random", "random", "--rules", "playwallgo-3p"],
            "for 3 players, a match is for",
        ),
        (["match", "random", "random", "--rules", '{"size": 2}'], "rules: size is 2, not a whole"),
        (["match", "random", "random", "--rules", '{"sise": 3}'], "rules: unknown key 'sise'"),
        (["match", "random", "random", "--rules", '{"size": 3'], "line 1"),
    ],
)
def test_usage_errors_are_one_line(words, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = command(*words)
    assert reason in complaint(said)
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [["--help"], *([name, "--help"] for name in (*CONFIGURED, "match", "probe"))]
)
def test_help(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert not caught.value.code
    assert "usage: python -m train" in capsys.readouterr().out


def test_interrupt_before_the_first_iteration(tmp_path, monkeypatch):
    def interrupt(config):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "make_programs", interrupt)
    said = command("run", tiny.PATH, "--runs", tmp_path)
    assert (said.code, said.err) == (EXIT_INTERRUPTED, "stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_interrupted_run_says_how_to_go_on(tmp_path, monkeypatch):
    run_iteration = training.run_iteration

    def interrupted(config, programs, state, index):
        if index == 2:
            signal.raise_signal(signal.SIGINT)
        return run_iteration(config, programs, state, index)

    monkeypatch.setattr(training, "run_iteration", interrupted)
    said = command("run", tiny.PATH, "--runs", tmp_path)
    assert said.code == EXIT_INTERRUPTED == 130
    assert said.err == ""
    last, message = said.out.splitlines()[-2:]
    assert last.startswith("iteration 3: ")
    assert message == "saved after iteration 3; the same command with --resume goes on"


def test_loss_that_is_not_finite_ends_the_run_in_one_line(copy, monkeypatch):
    one_by_one = iteration._one_by_one

    def broken(steps):
        losses = [step.losses._replace(loss=float("nan")) for step in one_by_one(steps)]
        return [step._replace(losses=x) for step, x in zip(steps, losses, strict=True)]

    monkeypatch.setattr(iteration, "_one_by_one", broken)
    said = command("run", tiny.PATH, "--runs", copy, "--resume", "--iterations", "7")
    good = f"the last good checkpoint is {copy}/tiny/resume/6; start a run with a lower"
    assert complaint(said).startswith(f"iteration 7, step 1 of 2: the loss is nan; {good}")
    assert sorted(path.name for path in (copy / "tiny" / "resume").iterdir()) == ["4", "6"]


def test_process_ends_without_a_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "train", "match", "random", "nobody"],
        cwd=tmp_path,
        env=compiling.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert complaint(Said(done.returncode, done.stdout, done.stderr)).startswith("player 'nobody'")
    assert done.stdout == ""


@pytest.mark.slow
def test_process_interrupted_and_resumed(tmp_path):
    words = ["--runs", str(tmp_path), "--evaluation.every", "0", "--checkpoint.every", "100"]
    words += ["--iterations", "30"]
    process = subprocess.Popen(
        [sys.executable, "-m", "train", "run", str(tiny.PATH), *words],
        env=compiling.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        about, first = process.stdout.readline(), process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert about.startswith("tiny on 1 × ")
    assert first.startswith("iteration 1: ")
    assert process.returncode == EXIT_INTERRUPTED
    assert err == ""
    assert "stopping: this iteration is finished and saved first" in out
    saved = re.search(r"^saved after iteration (\d+); the same command with --resume", out, re.M)
    done = int(saved.group(1))
    assert 1 <= done < 30
    directory = tmp_path / CONFIG.name
    assert len(read_rows(directory)) == done
    assert [path.name for path in (directory / "resume").iterdir()] == [str(done)]
    said = command("run", tiny.PATH, *words, "--resume")
    assert said.code == 0
    assert f"iteration {done + 1}: " in said.out
    assert [row["iteration"] for row in read_rows(directory)] == list(range(30))
    assert (directory / "evaluation.json").exists()
