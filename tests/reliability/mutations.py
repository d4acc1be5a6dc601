"""Changes one operator, number or call of the product at a time, drawn at random, and notes which
test fails first, if any: a line of JSON in OUT.

Tests run on a copy of the tree, OUT.tree, that keeps its compiled programs; once without a change.
A mutation that stands in OUT is not run again, so a run that was interrupted goes on.
"""

import argparse
import ast
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
FOLDERS = ("wallgo_jax/game", "train/search", "train/data", "train/learning", "train/loop")
UNITS = ("search", "data", "learning", "loop")
TESTS = ["tests/game", *(f"tests/train/{unit}" for unit in UNITS)]
TESTS += ["tests/test_env.py", "tests/test_observation.py"]
OPERATORS = {
    **{ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&")},
    **{ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")},
    **{ast.Eq: ("==", "!="), ast.NotEq: ("!=", "==")},
    **{ast.And: ("and", "or"), ast.Or: ("or", "and")},
}
CALLS = {"min": "max", "minimum": "maximum", "argmin": "argmax"}
CALLS |= {after: before for before, after in CALLS.items()}
AXES = {"0": ("1", "-1"), "1": ("0",), "-1": ("0",)}
# Where a whole number is an index, a size, a bound or an axis.
PLACES = (ast.Subscript, ast.Slice, ast.Tuple, ast.UnaryOp, ast.Compare, ast.Call, ast.BinOp)
LEFT_ALONE = (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments)
TYPES = ("annotation", "returns", "decorator_list", "type_params")


class Mutation(NamedTuple):
    """Bytes of a file, and what takes their place."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """The same in every tree that has the same file."""
        return f"{self.file}:{self.line} ({self.start}): {self.before} → {self.after}"

    def apply(self, source: bytes) -> bytes:
        """What the file becomes."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    def is_program(self) -> bool:
        """Whether Python can read what the file becomes."""
        try:
            return bool(ast.parse(self.apply((ROOT / self.file).read_bytes())))
        except SyntaxError:
            return False


def mutations_of(file: str, source: bytes) -> Iterator[Mutation]:
    """Every mutation of a file's functions."""
    starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]

    def span(node: Any) -> tuple[int, int]:
        begin, end = starts[node.lineno - 1], starts[node.end_lineno - 1]
        return begin + node.col_offset, end + node.end_col_offset

    for node, parent in _nodes_of_functions(ast.parse(source)):
        for start, end, after in _changes(node, parent, source, span):
            before, line = source[start:end].decode(), source.count(b"\n", 0, start) + 1
            yield Mutation(file, line, start, end, before, after.decode())


def _nodes_of_functions(node: ast.AST, parent: ast.AST | None = None) -> Iterator[Any]:
    """Nodes of statements inside functions, with their parents: no types, messages or contracts."""
    if parent is not None:
        yield node, parent
    is_inside = parent is not None or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            is_contract = isinstance(child, ast.Call) and _called(child).startswith("assert_")
            if isinstance(child, ast.AST) and not isinstance(child, LEFT_ALONE):
                if field not in TYPES and not is_contract:
                    yield from _nodes_of_functions(child, node if is_inside else None)


def _changes(node: Any, parent: Any, source: bytes, span: Any) -> Iterator[tuple[int, int, bytes]]:
    """Start, end and what stands there instead, of each change of one node alone."""
    pairs: list[tuple[Any, Any, Any]] = []
    match node:
        case ast.BinOp(left, op, right) | ast.AugAssign(left, op, right):
            pairs = [(left, op, right)]
        case ast.BoolOp(op, values):
            pairs = [(left, op, right) for left, right in itertools.pairwise(values)]
        case ast.Compare(first, ops, others):
            pairs = list(zip([first, *others[:-1]], ops, others, strict=True))
        case ast.UnaryOp(op=ast.USub()) if getattr(parent, "arg", "") != "axis":
            yield span(node)[0], span(node)[0] + 1, b"+"
        case ast.keyword(arg="axis") if ast.unparse(node.value) in AXES:
            for axis in AXES[ast.unparse(node.value)]:
                yield *span(node.value), axis.encode()
        case ast.Constant() if isinstance(parent, PLACES) and type(node.value) is int:
            if not isinstance(parent, ast.BinOp) or isinstance(parent.op, ast.Add | ast.Sub):
                for other in (node.value + 1, node.value - 1):
                    yield *span(node), str(other).encode()
        case ast.Call() if _called(node) in CALLS:
            end = span(node.func)[1]
            yield end - len(_called(node)), end, CALLS[_called(node)].encode()
        case ast.Call(args=[_, first, second]) if _called(node) == "where":
            (start, middle), (other, end) = span(first), span(second)
            yield start, end, source[other:end] + source[middle:other] + source[start:middle]
    for left, operator, right in pairs:
        if type(operator) in OPERATORS:
            before, after = (text.encode() for text in OPERATORS[type(operator)])
            gap = source[span(left)[1] : span(right)[0]]
            gap = re.sub(rb"#[^\n]*", lambda comment: b" " * len(comment[0]), gap)
            start = span(left)[1] + gap.index(before)
            yield start, start + len(before), after


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def drawn(count: int, seed: int) -> list[Mutation]:
    """Mutations, one a place, in an order that depends on the seed and each one's file alone."""

    def rank(mutation: Mutation) -> float:
        return random.Random(f"{seed} {mutation.name}").random()

    found: dict[tuple[str, int, int], Mutation] = {}
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        for one in sorted(mutations_of(file, path.read_bytes()), key=rank):
            found.setdefault((file, one.start, one.end), one)
    programs = (one for one in sorted(found.values(), key=rank) if one.is_program())
    return list(itertools.islice(programs, count))


def copy_tree(copy: Path) -> None:
    """Make the copy what git lists of this tree; its compiled programs stay."""
    for path in copy.iterdir() if copy.exists() else ():
        if path.name != ".jax_cache":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    listing = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
    for file in filter(None, listed.split("\0")):
        if (ROOT / file).is_file():
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, copy / file)


def failure(copy: Path, words: list[str], limit: float) -> tuple[str, float]:
    """The first test that fails, or how else pytest ends, "" where all pass; and the longest time
    without the end of a test [s], of which `limit` is allowed."""
    log, size, silence, since = Path(f"{copy}.log"), 0, 0.0, time.monotonic()
    shutil.rmtree(copy / ".pytest_cache", ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", *words]
    env = os.environ | {"PYTHONPATH": str(copy), "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as to:
        process = subprocess.Popen(
            command, cwd=copy, env=env, stdout=to, stderr=to, start_new_session=True
        )
    try:
        while (code := process.poll()) is None and silence < limit:
            time.sleep(0.2)
            if log.stat().st_size != size:
                size, since = log.stat().st_size, time.monotonic()
            silence = max(silence, time.monotonic() - since)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    failed = copy / ".pytest_cache/v/cache/lastfailed"
    if code in (1, 2) and failed.exists():
        return next(iter(json.loads(failed.read_text()))), silence
    return {0: "", None: "no end"}.get(code, f"exit code {code}"), silence


def tried(one: Mutation, copy: Path, runs: list[list[str]], limit: float) -> tuple[str, float]:
    """What fails first in these calls of pytest, of which a later one follows one that passes."""
    path, source = copy / one.file, (copy / one.file).read_bytes()
    try:
        _write(path, one.apply(source))
        for words in runs:
            test, silence = failure(copy, words, limit)
            if test and (test != "exit code 4" or words is runs[-1]):  # 4: there is no such test
                break
        return test, silence
    finally:
        _write(path, source)


def _write(path: Path, source: bytes) -> None:
    """Write a module, and forget what was compiled of one as long in the same second."""
    path.write_bytes(source)
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()


def _records(path: Path | None) -> dict[str, dict[str, Any]]:
    lines = path.read_text().splitlines() if path and path.exists() else []
    return {record["name"]: record for record in map(json.loads, lines)}


def main() -> None:
    """Try what is not tried yet; print the survivors of all that was drawn."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.mutations")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--count", type=int, default=40, help="mutations to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", default=TESTS, help="in place of those of the truth")
    parser.add_argument("--whole", action="store_true", help="all default tests, for survivors")
    parser.add_argument("--first", type=Path, help="an OUT whose killing tests are tried first")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out = options.out.resolve()
    mutations = drawn(options.count, options.seed)
    copy = Path(f"{out}.tree")
    copy_tree(copy)
    paths = [path for path in options.tests if (copy / path.partition("::")[0]).exists()]
    rest = [["tests", *(f"--ignore={path}" for path in paths)]] if options.whole else []
    done, former = _records(out), _records(options.first)

    def note(name: str, began: float, test: str, silence: float, **more: Any) -> None:
        seconds = round(time.monotonic() - began, 1)
        done[name] = dict(name=name, seconds=seconds, test=test, silence=round(silence, 1), **more)
        with out.open("a") as file:
            file.write(json.dumps(done[name], ensure_ascii=False) + "\n")
        print(*done[name].values(), flush=True)

    unchanged = f"unchanged: {' '.join([*paths, *itertools.chain(*rest)])}"
    if unchanged not in done:
        began = time.monotonic()
        for words in [paths, *rest]:
            test, silence = failure(copy, words, float("inf"))
            if test:
                raise SystemExit(f"{test} fails without a mutation: {copy}.log")
        note(unchanged, began, test, silence)
    limit = max(120.0, 3 * done[unchanged]["silence"])
    for one in mutations:
        if one.name not in done:
            mirror = f"tests/{one.file.removeprefix('wallgo_jax/').rpartition('/')[0]}"
            ordered = sorted(paths, key=lambda path: not f"{path}/".startswith(f"{mirror}/"))
            killer = former.get(one.name, {}).get("test", "")
            first, began = [[killer]] if "::" in killer else [], time.monotonic()
            test, silence = tried(one, copy, [*first, ordered, *rest], limit)
            result = "killed" if test else "survived"
            note(one.name, began, test, silence, result=result, **one._asdict())
    survivors = [one.name for one in mutations if done[one.name]["result"] == "survived"]
    killed = len(mutations) - len(survivors)
    print(f"{killed} of {len(mutations)} killed; survivors:", *survivors, sep="\n")


if __name__ == "__main__":
    main()
