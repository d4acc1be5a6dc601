"""Measure a GPU or TPU in a quarter of an hour: one process, the most useful part first.

- `strength`: a config is trained and meets the players that ship.
- `calls`: trainings of equal time whose self-play asks the network few times a move, in rounds,
  against one that asks it at every simulation (nanoAlphaZero plays chess with 8 actions at the
  root, then 4).
- `forms`: evaluations a second of networks, and their share of the device's peak.
- `profile`: a trace of two iterations, and the share of each part.

Every finished piece is kept at once, and a part that fails does not end the others: the same
command tries it again.
"""

import dataclasses
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import jax

import train
from train.config import RunConfig, read_config
from train.experiments import lab
from train.experiments.pace import iterations_within, measure_pace
from train.experiments.tables import Table
from train.loop import training
from train.runtime import files, profiling
from train.runtime.errors import UsageError
from train.runtime.showing import sparing, tell

Part = Literal["strength", "calls", "forms", "profile"]
_CACHE = "compiled"


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale for one device and fifteen minutes."""

    out: Path = Path("out/accelerator")
    parts: tuple[Part, ...] = ("strength", "calls", "forms", "profile")
    """In the order in which they are done."""
    config: str | None = "configs/gpu.toml"
    """TOML file of the run that is trained and changed; on a CPU it takes days."""
    iterations: int = 90
    """Of the training whose strength is measured; six minutes of one H100, compiling included."""
    opponents: tuple[str, ...] = ("pretrained:wallzero-4stone-v4", "pretrained:wallzero-4stone")
    """Networks that it meets."""
    games: int = 400
    """Of each match."""
    simulations: int = 64
    """Of both sides of all matches."""
    opening_plies: int = 2
    """Random plies after the players' placements."""
    schedules: tuple[str, ...] = ("64/16", "8/8", "12/8", "14/8")
    """SIMULATIONS/CONSIDERED ACTIONS of full searches. The first has no rounds; the others ask the
    network once for the root and once for each round: 2, 3 and 4 times."""
    minutes: float = 1.0
    """Of each of these trainings, without compiling."""
    forms: tuple[str, ...] = ("RRWRRW/128", "WWWWWW/128", "RRRRRR/128", "RRWRRW/192", "RRWRRW/256")
    """BLOCKS/WIDTH of networks."""
    boards: tuple[int, ...] = (512, 4096)
    """Batches in which they are evaluated."""
    peak: float = 989e12
    """Operations a second that the device reaches at most; that of an H100 and H200 with bfloat16.
    A multiply-add counts as two."""


def main(work: lab.Lab) -> dict[str, Any]:
    """Do the parts that are asked for."""
    scale = work.scale
    config = read_config(scale.config)
    for each in (*scale.schedules, *scale.forms):
        _pair(each)
    for opponent in scale.opponents:
        lab.check_network(opponent)
    # A second start of the script compiles nothing again.
    jax.config.update("jax_compilation_cache_dir", str(scale.out.resolve() / _CACHE))
    tables: dict[str, Table] = {}
    failed = []
    for part in scale.parts:
        try:
            tables[part] = _PARTS[part](work, config)
        except Exception:
            failed.append(part)
            path = scale.out / f"{part}.error.txt"
            tell(f"{part} failed: {path}")
            with sparing(path):
                files.replace_text(path, traceback.format_exc())
        work.write(tables)
    if failed:
        raise UsageError(f"accelerator: these parts failed: {', '.join(failed)}")
    return work.finish(tables)


def strength(work: lab.Lab, config: RunConfig) -> Table:
    """Train the config and match it."""
    scale = work.scale
    trained = work.train("strength", dataclasses.replace(config, iterations=scale.iterations))
    rows = []
    for opponent in scale.opponents:
        played = _match(work, trained, f"{opponent}@{scale.simulations}")
        minutes = f"{trained['minutes']:.1f}"
        rows.append({"opponent": f"`{opponent}`", "games": played, "minutes": minutes})
    columns = [["opponent", "opponent"], ["won, drawn, lost", "games", "counts"]]
    columns += [["% won", "games"], ["minutes of training", "minutes"]]
    return Table(f"{config.name}, {scale.iterations} iterations", columns, rows)


def calls(work: lab.Lab, config: RunConfig) -> Table:
    """Train with each schedule for the same time, and match the others with the first."""
    scale = work.scale
    trained = {}
    for number, schedule in enumerate(scale.schedules):
        simulations, considered = _pair(schedule)
        search = dataclasses.replace(
            config.search,
            simulations=int(simulations),
            max_considered_actions=int(considered),
            first_simulations=0,
            rounds=number > 0,
        )
        changed = dataclasses.replace(config, search=search)
        key = {"schedule": schedule, "config": config.name, "minutes": scale.minutes}
        iterations = work.keep("paces", key, lambda changed=changed: _iterations(scale, changed))
        changed = dataclasses.replace(changed, iterations=iterations)
        trained[schedule] = work.train(f"calls-{schedule.replace('/', '-')}", changed)
    base, *others = scale.schedules
    rows = []
    for schedule in others:
        player = lab.player_of(trained[base], scale.simulations)
        row = {"schedule": schedule, "games": _match(work, trained[schedule], player)}
        row["positions"] = trained[schedule]["positions"]
        rows.append(row)
    columns = [["simulations / considered", "schedule"], ["positions", "positions"]]
    columns += [["won, drawn, lost", "games", "counts"], ["% won", "games"]]
    positions = trained[base]["positions"]
    return Table(f"Against {base}, {positions:,} positions in equal time", columns, rows)


def forms(work: lab.Lab, config: RunConfig) -> Table:
    """Measure the speed of networks."""
    scale = work.scale
    rows = []
    for form in scale.forms:
        blocks, width = _pair(form)
        network = dataclasses.replace(config.network, blocks=blocks, width=int(width))
        changed = dataclasses.replace(config, network=network)
        for boards in scale.boards:
            key = {"form": form, "boards": boards, "config": config.name}
            speed = work.keep("speeds", key, lambda c=changed, b=boards: _speed(c, b))
            operations = 2 * speed["multiply_adds_per_second"]
            rows.append(
                {
                    "form": f"{blocks}, {width}",
                    "boards": boards,
                    "evaluations": f"{speed['evaluations_per_second']:,.0f}",
                    "share": f"{operations / scale.peak:.1%}",
                }
            )
    columns = [["blocks, width", "form"], ["boards", "boards"]]
    columns += [["evaluations a second", "evaluations"], ["share of the peak", "share"]]
    return Table("Networks", columns, rows)


def profile(work: lab.Lab, config: RunConfig) -> Table:
    """Trace two iterations."""
    folder = work.scale.out / "trace"

    def traced() -> dict[str, float]:
        iterations = profiling.SKIPPED + profiling.TRACED + 1
        short = dataclasses.replace(lab.plain_run(config), iterations=iterations)
        number = sum(1 for _ in work.runs.glob("profile-*"))
        named = dataclasses.replace(short, name=f"profile-{number}")
        training.train(named, work.runs, resume=False, profile=folder)
        return profiling.times_by_scope(profiling.newest_trace(folder))

    times = work.keep("profiles", {"config": config.name}, traced)
    total = sum(times.values()) or 1.0
    shares = sorted(((time / total, part) for part, time in times.items()), reverse=True)
    rows = [{"part": f"`{part}`", "share": f"{share:.1%}"} for share, part in shares]
    return Table(f"Two iterations of {config.name}", [["part", "part"], ["share", "share"]], rows)


_PARTS: dict[Part, Callable[[lab.Lab, RunConfig], Table]] = {
    "strength": strength,
    "calls": calls,
    "forms": forms,
    "profile": profile,
}


def _pair(text: str) -> tuple[str, str]:
    """The two parts of A/B, of which the second is a number."""
    first, slash, second = text.partition("/")
    if not (first and slash and second.isdecimal()):
        raise UsageError(f"accelerator: {text!r} is not of the form A/NUMBER")
    return first, second


def _iterations(scale: Scale, config: RunConfig) -> int:
    return iterations_within(config, measure_pace(config).seconds, 60 * scale.minutes)


def _speed(config: RunConfig, boards: int) -> dict[str, float]:
    speed = train.describe(config, batch=boards).speed
    assert speed is not None
    return speed._asdict()


def _match(work: lab.Lab, trained: dict[str, Any], opponent: str) -> dict[str, Any]:
    scale = work.scale
    return work.match(
        lab.player_of(trained, scale.simulations),
        opponent,
        games=scale.games,
        opening_plies=scale.opening_plies,
        players_place=True,
        seed=scale.seed,
    )


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
