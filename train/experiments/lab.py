"""What experiments share: kept results, trainings, matches, and the data of their tables.

An experiment is a script over the public interface. Each finished training, match or other piece is
a line of JSON in the folder of results, with named fields, found again by a key that holds all that
decides it; so the same command goes on where it was interrupted. The seed is the unit: players of
one seed meet players of the same seed.
"""

import dataclasses
import datetime
import hashlib
import itertools
import json
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import jax
import numpy as np
import tyro

import train
from train.checkpoints import store
from train.config import CheckpointConfig, EvaluationConfig, RunConfig, config_to_dict
from train.experiments.tables import Table
from train.loop.stages import evaluations_of_rows
from train.metrics.figure import save_figure
from train.players.names import check_without_budget, read_network_name
from train.players.networks import load_network, network_config
from train.runtime import display, files, provenance
from train.runtime.devices import machine
from train.runtime.errors import UsageError, check_two_players, usage_errors
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts
from train.runtime.showing import sparing
from wallgo_jax._version import __version__

DATA = "data.json"
PAGE = "README.md"
NO_MATCHES = EvaluationConfig(every=0, opponents=(), anchors=())
_USAGE_ERROR = 2
_CHECKPOINTS = 4
_Scale = TypeVar("_Scale", bound="Options")


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of every experiment."""

    out: Path = Path("out/study")
    """Folder of results, trainings and data, which experiments share."""
    seed: int = 0
    """Random seed of openings and noise."""


@dataclasses.dataclass(frozen=True)
class Lab:
    """The work of an experiment.

    Attributes:
      name: of the experiment.
      scale: how much is done.
      command: that does the same again.
      progress: whether bars are shown.
    """

    name: str
    scale: Any
    command: str = ""
    progress: bool = False
    _used: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def runs(self) -> Path:
        """The folder of the trainings."""
        return self.scale.out / "runs"

    def find(self, kind: str, key: Mapping[str, Any]) -> Any:
        """A kept result, or None."""
        path = self.scale.out / f"{kind}.jsonl"
        wanted = _plain(key)
        for line in files.parse_lines(path, files.read_json_lines(path), json.loads):
            if line["key"] == wanted:
                self._used.append(line)
                return line["result"]
        return None

    def keep(self, kind: str, key: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """A result that is kept, or that is made and kept now.

        Args:
          kind: names the file.
          key: all that decides the result, JSON-ready.
          make: returns the result, JSON-ready with named fields.

        A line that cannot be written costs the next call the work, not this one.
        """
        if (found := self.find(kind, key)) is not None:
            return found
        began = time.perf_counter()
        result = _plain(make())
        line = {
            "key": _plain(key),
            "result": result,
            "seconds": time.perf_counter() - began,
            "machine": machine(),
            "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "git": provenance.git_revision(Path(provenance.__file__).parent),
        }
        path = self.scale.out / f"{kind}.jsonl"
        with sparing(path, "the next call makes it again"):
            files.append_line(path, json.dumps(line))
        self._used.append(line)
        return result

    def train(self, name: str, config: RunConfig, *, keeps: EvaluationConfig = NO_MATCHES) -> Any:
        """Train a config, unless that is done.

        Args:
          name: begins the name of its run.
          config: its name, its evaluation and its checkpoints do not count.
          keeps: its matches.

        Returns:
          A dict: `run`, its directory; `iterations`, `minutes` of self-play and learning,
          `compile_seconds`, `games`, `positions`, `evaluations` of the network in self-play, and
          `curve`, the minutes and win rates of its matches.

        Raises:
          KeyboardInterrupt: it was interrupted and saved; the next call goes on.
        """
        config = plain_run(config, keeps)
        fields = config_to_dict(config)
        key = {part: fields[part] for part in fields if part not in ("name", "tracking")}
        key["weights"] = weights_of(fields)
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:6]
        named = dataclasses.replace(config, name=f"{name}-{digest}")
        found = self.keep("trainings", key, lambda: _train(named, self.runs, self.progress))
        # The replay of every run would fill a disk; the weights stay.
        shutil.rmtree(self.runs / named.name / store.RESUME, ignore_errors=True)
        return {**found, "run": str(self.runs / named.name)}

    def train_all(
        self, configs: Mapping[str, RunConfig], seeds: int, **options: Any
    ) -> dict[str, list[Any]]:
        """Train each config with seeds 0, 1, ..., seed by seed; see `train`."""
        trained: dict[str, list[Any]] = {name: [] for name in configs}
        for seed in range(seeds):
            for name, config in configs.items():
                seeded = dataclasses.replace(config, seed=seed)
                trained[name].append(self.train(f"{name}-seed{seed}", seeded, **options))
        return trained

    def match(self, first: str, second: str, **options: Any) -> dict[str, Any]:
        """Play a match, unless that is done; the options are those of `train.match`.

        Returns:
          `won`, `drawn` and `lost`, the games of the first.
        """
        how = {name: options[name] for name in ("rules", "transfer") if name in options}
        players = [train.make_player(name, **how) for name in (first, second)]
        key = {"players": [player.identity for player in players], **options}
        key["rules"] = players[0].rules.to_dict()

        def play() -> dict[str, int]:
            how: dict[str, Any] = options | {"rules": None}
            played = train.match(*players, progress=self.progress, **how)
            # Each match has programs of its own, which would fill the memory.
            jax.clear_caches()
            return {"won": played.wins, "drawn": played.draws, "lost": played.losses}

        return self.keep("matches", key, play)

    def round_robin(
        self,
        trained: Mapping[str, Sequence[Mapping[str, Any]]],
        *,
        simulations: int | Mapping[str, int],
        **options: Any,
    ) -> list[dict[str, Any]]:
        """Match the players of each seed with one another.

        Args:
          trained: runs by name and seed, as `train_all` gives them.
          simulations: of all players, or by name.
          options: of `match`.

        Returns:
          Counts of `match` with `first`, `second` and `seed`.
        """
        meetings = []
        for pair in itertools.combinations(trained, 2):
            for seed, runs in enumerate(zip(*(trained[name] for name in pair), strict=True)):
                names = [
                    player_of(run, simulations if isinstance(simulations, int) else simulations[x])
                    for x, run in zip(pair, runs, strict=True)
                ]
                counts = self.match(*names, seed=self.scale.seed, **options)
                meetings.append({"first": pair[0], "second": pair[1], "seed": seed, **counts})
        return meetings

    def save_figure(self, name: str, figure: Any, *, caption: str = "") -> None:
        """Write a figure of matplotlib into the experiment's folder."""
        path = self.scale.out / self.name / f"{name}.svg"
        with sparing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            save_figure(figure, path, caption=caption)

    def finish(self, tables: Mapping[str, Table], **counts: Any) -> dict[str, Any]:
        """Print the tables and `write` them."""
        data = self.write(tables, **counts)
        console = display.Display().console
        for table in tables.values():
            console.print(table.shown())
        print(f"written: {self.scale.out / self.name}")
        return data

    def write(
        self, tables: Mapping[str, Table], *, text: Sequence[str] = (), **counts: Any
    ) -> dict[str, Any]:
        """Write the experiment's data and its page, what can be written.

        Args:
          tables: by name.
          text: paragraphs of the page.
          counts: what else is kept.

        Returns:
          The data, as docs/results/data/ keeps them: every count behind a cell, and what measured
          them.
        """
        used = self._used
        revisions = {git["revision"] for line in used if (git := line.get("git"))}
        measured = {
            "command": self.command,
            "commits": sorted(revisions),
            "version": __version__,
            "machines": sorted({line["machine"] for line in used}),
            "days": sorted({line["day"] for line in used}),
            "hours": round(sum(line["seconds"] for line in used) / 3600, 3),
        }
        scale = files.plain_data(dataclasses.asdict(self.scale))
        shown = {name: table._asdict() for name, table in tables.items()}
        data = _plain({"measured": measured, "scale": scale, "tables": shown} | counts)
        words = [f"Version {__version__}", *measured["machines"], f"{measured['hours']:.2f} hours"]
        where = f"{'; '.join(words)}."
        parts = [f"# {self.name}", f"```bash\n{self.command}\n```", where, *text]
        parts += [f"**{table.title}**\n\n{table.markdown()}" for table in tables.values()]
        folder = self.scale.out / self.name
        with sparing(folder / DATA):
            files.write_json(folder / DATA, data)
        with sparing(folder / PAGE):
            files.replace_text(folder / PAGE, "\n\n".join(parts) + "\n")
        return data


def start(main: Callable[[Lab], Any], scale: type[_Scale], module: str) -> NoReturn:
    """Run an experiment as a script and leave with its exit code.

    Args:
      main: measures and calls `Lab.finish`.
      scale: of the experiment, whose fields are the script's options.
      module: file of the script.
    """
    name = Path(module).stem
    chosen = tyro.cli(scale, description=sys.modules["__main__"].__doc__)
    command = shlex.join(["python", "-m", f"train.experiments.{name}", *sys.argv[1:]])
    try:
        with files.locked(chosen.out), interrupts("what is finished is kept"):
            main(Lab(name, chosen, command, progress=True))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(_USAGE_ERROR)
    except KeyboardInterrupt:
        print(f"stopped; to continue: {command}", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(0)


def check_network(name: str) -> None:
    """Refuse the name of no network, one with simulations, and a network whose rules are for more
    than two players, with a UsageError."""
    read = read_network_name(name)
    check_without_budget(read)
    check_two_players(network_config(read).rules, f"experiment: {name}")


def player_of(trained: Mapping[str, Any], simulations: int) -> str:
    """The name of a training's player; without simulations its raw policy plays."""
    return f"search:{trained['run']}@{simulations}" if simulations else f"net:{trained['run']}"


def _train(config: RunConfig, runs: Path, progress: bool) -> dict[str, Any]:
    """Train a config to its end, from its last checkpoint where there is one."""
    run = runs / config.name
    if (run / store.WEIGHTS).is_dir():
        going = train.resume(run, progress=progress)
    else:
        # It was left before its first weights: it starts anew.
        shutil.rmtree(run, ignore_errors=True)
        going = train.start(config, runs=runs, progress=progress)
    finals = going.finish()
    # Each config has programs of its own, which would fill the memory.
    jax.clear_caches()
    rows = going.rows
    keys = ("selfplay_seconds", "learn_seconds", "compile_seconds", "games", "positions")
    sums = {key: sum(row.get(key) or 0.0 for row in rows) for key in keys}
    seconds = np.cumsum([row["selfplay_seconds"] + row["learn_seconds"] for row in rows])
    curve = [
        {"minutes": at / 60, "rate": row["win_rate"]}
        for at, row in zip(seconds, rows, strict=True)
        if "win_rate" in row
    ]
    curve += [{"minutes": seconds[-1] / 60, "rate": each.win_rate} for each in finals[:1]]
    return {
        "iterations": config.iterations,
        "minutes": (sums["selfplay_seconds"] + sums["learn_seconds"]) / 60,
        "compile_seconds": sums["compile_seconds"],
        "games": int(sums["games"]),
        "positions": int(sums["positions"]),
        "evaluations": evaluations_of_rows(config, rows),
        "curve": curve,
    }


def plain_run(config: RunConfig, matches: EvaluationConfig = NO_MATCHES) -> RunConfig:
    """A run with these matches that keeps its newest checkpoint alone."""
    every = max(1, config.iterations // _CHECKPOINTS)
    checkpoint = CheckpointConfig(every=every, keep=1, keep_best=0, keep_every=0)
    return dataclasses.replace(config, evaluation=matches, checkpoint=checkpoint)


def weights_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """The checksums of the weights that a config names: a name may come to mean others."""
    named = {key: fields[key] for key in ("start_weights", "init_from")}
    named["selfplay.opponent"] = fields["selfplay"]["opponent"]
    digests = {}
    for key, name in named.items():
        with usage_errors(key):
            digests |= {key: load_network(name).digest} if name else {}
    return digests


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(files.plain_data(value), default=str))
