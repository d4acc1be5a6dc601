"""The verbs by the words that users type; each is a function of `train`.

`python -m train --help`, the pages of docs/reference and the tests of both doors are made from
this table.
"""

from typing import NamedTuple


class Verb(NamedTuple):
    """A word of the command line, and the function that it runs.

    Attributes:
      group: title on the help page.
      name: of the function in `train`; where the word is a folder of the package, or a noun, the
        function has a name of its own.
      place: of the function or, where the command line does more, of a command of its own.
      examples: lines to type after `python -m train`.
      has_json: its result can be written as JSON.
      has_plot: its result can be drawn.
    """

    group: str
    name: str
    place: str
    examples: tuple[str, ...]
    has_json: bool = True
    has_plot: bool = False


VERBS: dict[str, Verb] = {
    "run": Verb(
        "train",
        "run",
        "train.cli.run:RunCommand",
        (
            "run configs/cpu.toml --seed 1 --network.width 64",
            "run --resume runs/cpu --iterations 200",
            "run --rules playwallgo-2p --name two",
        ),
    ),
    "fit": Verb(
        "train",
        "fit",
        "train.cli.run:FitCommand",
        (
            "fit configs/quickstart.toml --records out/games.jsonl.gz",
            "fit --resume runs/quickstart --iterations 80",
        ),
    ),
    "config": Verb(
        "train",
        "make_config",
        "train.cli.run:ConfigCommand",
        (
            "config configs/cpu.toml --learner.steps 64",
            "config --only search",
            "config runs/quickstart --toml",
        ),
    ),
    "ablation": Verb(
        "measure",
        "ablation",
        "train.experiments.compare:ablation",
        (
            "ablation configs/ablations/recipe.toml --out out/recipe --screening",
            "ablation configs/ablations/recipe.toml --out out/recipe --only width-64",
        ),
    ),
    "speedrun": Verb(
        "measure",
        "speedrun",
        "train.experiments.speedrun:speedrun",
        (
            "speedrun run configs/quickstart.toml --out out/speedrun",
            "speedrun verify docs/results/data/speedrun/quickstart",
            "speedrun verify out/speedrun/record --rerun 3",
        ),
    ),
    "curves": Verb(
        "measure",
        "curves",
        "train.cli.curves:CurvesCommand",
        ("curves runs/quickstart", "curves runs/a runs/b --axis hours --out out/ab.svg"),
        has_json=False,
    ),
    "match": Verb(
        "measure",
        "match",
        "train.cli.games:MatchCommand",
        (
            "match runs/quickstart",
            "match search:runs/quickstart@64 wjx --games 400",
            "match search:runs/a search:runs/b --games 4000 --sprt 0,20",
            "match runs/cpu@64 --gate",
            "match greedy wjx --rules wallzero-empty --records out/games.jsonl.gz",
            "match wjx greedy random --rules playwallgo-3p",
            "match my-games/*.jsonl",
            "match heuristic-search:wjx@16 wjx --rules playwallgo-4p",
        ),
        has_plot=True,
    ),
    "elo": Verb(
        "measure",
        "elo",
        "train.cli.games:EloCommand",
        (
            "elo runs/quickstart --out out/elo",
            "elo runs/a runs/b --budget 8000 --zero wjx --plot out/curve.png",
        ),
        has_plot=True,
    ),
    "tournament": Verb(
        "measure",
        "tournament",
        "train.api.games:tournament",
        (
            "tournament random greedy wjx ethen",
            "tournament wjx ethen greedy random --format double-elimination --heats 2",
            "tournament random greedy wjx ethen --rules playwallgo-3p",
        ),
        has_plot=True,
    ),
    "accuracy": Verb(
        "measure",
        "accuracy",
        "train.cli.games:AccuracyCommand",
        (
            "accuracy search:runs/tiny@64",
            "accuracy search:runs/tiny_4x4@64 --positions 5000",
            "accuracy --late out/late.jsonl",
            "accuracy runs/quickstart/checkpoints/* --late out/late.jsonl",
        ),
        has_plot=True,
    ),
    "prove": Verb(
        "measure",
        "prove",
        "train.api.measures:prove",
        ("prove out/games.jsonl.gz --late out/late.jsonl",),
    ),
    "levels": Verb(
        "measure",
        "levels",
        "train.api.models:levels",
        (
            "levels pretrained:wallzero-4stone --card",
            "levels models/mine --budget 4000 --json out/levels.json",
        ),
        has_plot=True,
    ),
    "calibrate": Verb(
        "measure",
        "calibrate",
        "train.api.reviews:calibrate",
        (
            "calibrate pretrained:wallzero-4stone@256 --plot out/reliability.png",
            "calibrate models/mine@64 --games out/games.jsonl.gz --card",
        ),
        has_plot=True,
    ),
    "bench": Verb(
        "measure",
        "bench_speed",
        "train.cli.bench:BenchCommand",
        (
            "bench --what env --batch 256,1024 --against pgx",
            "bench configs/gpu.toml --report out/bench",
            "bench configs/cpu.toml --what strength",
            "bench --what engine --player pretrained:wallzero-4stone@64",
            "bench configs/gpu.toml --what compile --target v5e:1x1",
        ),
    ),
    "play": Verb(
        "play",
        "serve_page",
        "train.api.serving:serve_page",
        (
            "play --rules playwallgo-3p",
            "play --port 9000 --no-browser --puzzles out/puzzles.jsonl",
        ),
        has_json=False,
    ),
    "review": Verb(
        "analyse",
        "review_game",
        "train.cli.review:ReviewCommand",
        (
            "review out/games.jsonl --game 2",
            "review out/games.jsonl --player pretrained:wallzero-4stone@1024 --siblings 21",
        ),
    ),
    "puzzles": Verb(
        "analyse",
        "find_puzzles",
        "train.api.puzzles:find_puzzles",
        (
            "puzzles --out out/puzzles.jsonl",
            "puzzles --games out/games.jsonl.gz --player runs/cpu --out out/puzzles.jsonl.gz",
        ),
    ),
    "check-puzzles": Verb(
        "analyse",
        "check_puzzles",
        "train.api.puzzles:check_puzzles",
        ("check-puzzles out/puzzles.jsonl",),
    ),
    "describe": Verb(
        "analyse",
        "describe",
        "train.api.measures:describe",
        ("describe runs/quickstart", "describe configs/restnet.toml --no-measure"),
    ),
    "attention": Verb(
        "analyse",
        "attention",
        "train.cli.inspect:AttentionCommand",
        ("attention RUN game.jsonl --ply 20 --cell C3 --out out/attention.svg",),
    ),
    "ownership": Verb(
        "analyse",
        "ownership",
        "train.cli.inspect:OwnershipCommand",
        (
            "ownership runs/quickstart game.jsonl --ply 20 --out out/ownership.svg",
            "ownership wjx game.jsonl --ply 20 --out out/wjx.svg",
        ),
    ),
    "export": Verb(
        "serve",
        "export",
        "train.api.models:export",
        (
            "export runs/quickstart out/quickstart",
            "export runs/cpu models/mine --matches out/wjx.json out/shipped.json",
            "export runs/quickstart --web out/page",
        ),
        has_json=False,
    ),
    "engine": Verb(
        "serve",
        "serve_engine",
        "train.api.serving:serve_engine",
        (
            "engine pretrained:wallzero-4stone@64",
            "engine heuristic-search:wjx@32 --rules hkoi playwallgo-3p",
        ),
        has_json=False,
    ),
}
