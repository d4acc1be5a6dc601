"""The table of an ablation: a line for each change, those that lost as well."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table

from train.loop.start import code_in_words
from train.study.ablation import Step, Study
from train.study.changes import Change
from train.study.frame.seeds import EARNEST_SEEDS, Estimate, estimate, interval_kind
from train.study.results import MATCH, TRAINING, Row

TABLE_FILE = "table.md"
_HEADS = (
    "change",
    "against",
    "win rate",
    "95 % interval",
    "verdict",
    "by seed",
    "iterations",
    "minutes",
    "compiling",
)


class Line(NamedTuple):
    """A change and what is known of it so far."""

    change: Change
    rates: tuple[float, ...]  # a win rate for each seed whose matches are all done
    score: Estimate | None  # None while there is none
    trainings: tuple[Row, ...]
    diverged: tuple[int, ...]  # seeds whose loss or gradient became NaN or infinite


def lines_of(study: Study) -> list[Line]:
    """A line for each change, the base first."""
    return [_line(study, change) for change in study.changes]


def _line(study: Study, change: Change) -> Line:
    trained, rates = [], []
    for seed in study.options.all_seeds:
        row = study.find(Step(TRAINING, change, seed))
        trained += [row] if row else []
        if not change.against:
            continue
        plies = study.options.opening_plies
        found = [study.find(Step(MATCH, change, seed, each)) for each in plies]
        matches = [match for match in found if match is not None]
        if len(matches) == len(plies):
            points = sum(match["wins"] + match["draws"] / 2 for match in matches)
            rates.append(points / study.options.games)
    score = estimate(rates, study.options.games) if rates else None
    failed = [seed for seed in study.options.all_seeds if study.failure(change, seed)]
    return Line(change, tuple(rates), score, tuple(trained), tuple(failed))


def markdown(study: Study, *, title: str, command: str) -> str:
    """The table as a page of its own, with the command that made it."""
    lines = [f"# {title}", "", caption(study), "", "```bash", command, "```", ""]
    lines += [_row(_HEADS), _row(["---"] * len(_HEADS))]
    found = lines_of(study)
    lines += [_row(_cells(line)) for line in found]
    told = code_line(study)
    lines += ["", told] if told else []
    lines += ["", "What each changes:", ""]
    lines += [f"- `{line.change.name}`: {_about(line.change)}" for line in found]
    return "\n".join(lines) + "\n"


def table(study: Study) -> Table:
    """The table for a terminal: the figures that decide."""
    made = Table(caption=caption(study), caption_justify="left")
    heads = ("change", "against", "win rate", "95 % interval", "verdict", "seeds", "iterations")
    for head in heads:
        made.add_column(head, overflow="fold")
    for line in lines_of(study):
        cells = dict(zip(_HEADS, _cells(line), strict=True)) | {"seeds": str(len(line.rates))}
        made.add_row(*(cells[head] for head in heads))
    return made


def caption(study: Study) -> str:
    """How the figures were made, in a sentence or two."""
    options = study.options
    plies = " and ".join(map(str, options.opening_plies))
    kind = "" if options.seeds >= EARNEST_SEEDS else "Screening: it decides nothing. "
    found = lines_of(study)
    # A line of one seed has the interval of its games, also while others are still to come.
    seeds = {len(line.rates) for line in found if line.rates} or {options.seeds}
    interval = ", or ".join(dict.fromkeys(map(interval_kind, sorted(seeds, reverse=True))))
    rows = [row for line in found for row in line.trainings]
    where = " and ".join(dict.fromkeys(row["where"] for row in rows)) or "not yet trained"
    days = ", ".join(sorted({row["time"][:10] for row in rows})) or "no day yet"
    return (
        f"{kind}{options.minutes:g} minutes of training each, compiling apart; {options.seeds} "
        f"paired seed(s), {options.games} games a seed at {options.simulations} simulations from "
        f"shared random openings of {plies} plies; interval: {interval}; {where}; {days}."
    )


def code_line(study: Study) -> str:
    """Which versions of the code trained the rows of the table; empty where it was one."""
    rows = [row for line in lines_of(study) for row in line.trainings]
    numbers = Counter(code_in_words(row.get("code") or ()) for row in rows)
    if len(numbers) < 2:
        return ""
    told = ", ".join(f"{code} ({number})" for code, number in numbers.items())
    return f"The trainings are of different versions of the code: {told}."


def _cells(line: Line) -> list[str]:
    score, rows = line.score, line.trainings
    cells = [line.change.name, line.change.against or "–"]
    if score is None:
        cells += ["", "", "" if line.change.against else "the base", ""]
    else:
        by_seed = " ".join(f"{100 * rate:.1f}" for rate in line.rates)
        interval = f"{100 * score.low:.1f} to {100 * score.high:.1f} %"
        cells += [f"{100 * score.mean:.1f} %", interval, score.verdict, by_seed]
    if line.diverged:
        seeds = " ".join(map(str, line.diverged))
        cells[_HEADS.index("verdict")] = f"diverged with seed {seeds}"
    if not rows:
        return [*cells, "", "", ""]
    minutes = " ".join(f"{row['seconds'] / 60:.1f}" for row in rows)
    compiling = f"{sum(row['compile_seconds'] for row in rows) / len(rows):.0f} s"
    iterations = " or ".join(dict.fromkeys(str(row["iterations"]) for row in rows))
    return [*cells, iterations, minutes, compiling]


def _about(change: Change) -> str:
    keys = ", ".join(f"`{key}`" for key in change.keys)
    return "; ".join(text for text in (change.about, keys) if text)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
