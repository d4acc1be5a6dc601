"""Reads the text of a compiled program: its loops, and what a turn of each holds."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

_FREE = frozenset(
    "parameter constant get-tuple-element tuple bitcast while conditional call after-all "
    "partition-id copy-done async-done slice-done".split()
)
"""Instructions that do not become kernels."""
_CALLS = ("fusion", "call", "conditional", "async-start", "custom-call")
_CALLED = re.compile(
    r"(?:calls|to_apply|condition|body|true_computation|false_computation)=%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_SOURCE = re.compile(r"((?:train|wallgo_jax)/[\w/]+\.py)$")


class Instruction(NamedTuple):
    """An instruction of a program."""

    name: str
    kind: str  # its opcode, such as `fusion`
    indices: int  # that its gathers and scatters read
    text: str

    @property
    def cycles(self) -> int:
        """The compiler's estimate; 0 where it has none."""
        return _number(r'"estimated_cycles":"(\d+)"', self.text) or 0


class Loop(NamedTuple):
    """A loop, or the whole program, which is a loop of one turn."""

    name: str
    place: str  # FILE:LINE of this project; empty where the compiler made it
    turns: int | None  # None where data end it
    kernels: tuple[Instruction, ...]  # of a turn; here and below those of inner loops are left out
    counts: Counter[str]  # by opcode, those inside kernels included; indices of `gather indices`
    inner: tuple["Loop", ...]

    def rows(
        self, turns: float, *, depth: int = 0, times: float = 1.0
    ) -> Iterator[tuple[int, float, "Loop"]]:
        """Depth, turns in a turn of this loop, and loop: of this one and of all inner ones.

        Args:
          turns: of a loop that data end.
        """
        yield depth, times, self
        for loop in self.inner:
            more = turns if loop.turns is None else loop.turns
            yield from loop.rows(turns, depth=depth + 1, times=times * more)

    def total(self, of: Callable[["Loop"], float], turns: float) -> float:
        """A figure of a turn with all inner loops; `turns` as in `rows`."""
        return sum(times * of(loop) for _, times, loop in self.rows(turns))


def read_loops(text: str | None) -> Loop:
    """The whole program with all its loops.

    Args:
      text: what `jax.stages.Compiled.as_text` returns.
    """
    computations, entry = _read_computations(text or "")
    place_of = _places(text or "")

    def read(names: list[str], at: Instruction | None) -> Loop:
        walked = [entry for name in names for entry in _walk(computations, name)]
        counts = Counter(each.kind for each, _ in walked)
        for each, _ in walked:
            if each.kind in ("gather", "scatter"):
                counts[f"{each.kind} indices"] += each.indices
        return Loop(
            name=at.name if at else "whole program",
            place=place_of(at) if at else "",
            turns=_turns(computations, at) if at else 1,
            kernels=tuple(each for each, is_kernel in walked if is_kernel),
            counts=counts,
            inner=tuple(
                read(_called(each)[:2], each) for each, _ in walked if each.kind == "while"
            ),
        )

    return read([entry], None)


_Computations = dict[str, list[Instruction]]
"""A program's computations by their names."""


def _read_computations(text: str) -> tuple[_Computations, str]:
    """The computations, and the name of the one that the program starts with."""
    computations: _Computations = {}
    entry, types, current = "", {}, []
    for line in text.splitlines():
        if head := re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{\s*$", line):
            current = computations.setdefault(head[2], [])
            entry, types = head[2] if head[1] else entry, {}
        elif parsed := re.match(
            r"\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)(?= [a-z])|\S+) ([\w\-]+)\(", line
        ):
            name, type_, kind = parsed.groups()
            types[name] = type_
            current.append(Instruction(name, kind, _indices(kind, type_, line, types), line))
    return computations, entry


def _walk(
    computations: _Computations, name: str, *, is_kernel: bool = True
) -> Iterator[tuple[Instruction, bool]]:
    """Instructions of a computation and of those that it calls, loops left out, each with whether
    it is a kernel; a kernel has the indices of all that it holds."""
    for each in computations[name]:
        holds_kernels = is_kernel and each.kind in ("call", "conditional")
        called = _called(each) if each.kind in _CALLS else ()
        inside = [
            x for inner in called for x in _walk(computations, inner, is_kernel=holds_kernels)
        ]
        if is_kernel and each.kind not in _FREE:
            held = sum(x.indices for x, _ in inside if x.kind in ("gather", "scatter"))
            yield each._replace(indices=each.indices + held), True
        else:
            yield each, False
        yield from inside


def _called(each: Instruction) -> list[str]:
    branches = "".join(_BRANCHES.findall(each.text))
    return _CALLED.findall(each.text) + re.findall(r"%([\w.\-]+)", branches)


def _turns(computations: _Computations, loop: Instruction) -> int | None:
    """The turns that the compiler knows, or those of a condition that compares with a constant."""
    known = _number(r'known_trip_count":\{"n":"(\d+)"', loop.text)
    condition = computations[_called(loop)[0]]
    held = [x for x in condition if x.kind not in ("parameter", "get-tuple-element")]
    if known is None and len(held) == 2 and "direction=LT" in held[1].text:
        return _number(r"constant\((\d+)\)", held[0].text)
    return known


def _indices(kind: str, type_: str, line: str, types: dict[str, str]) -> int:
    """Indices that a gather or a scatter reads; `types` are those of the lines before."""
    if kind == "gather":
        (slices,) = re.findall(r"slice_sizes=\{([\d,]*)\}", line)
        return math.prod(_shape(type_)) // max(math.prod(_ints(slices)), 1)
    if kind != "scatter":
        return 0
    # Operands, indices, updates: as many operands as updates.
    names = re.findall(r"%([\w.\-]+)", line.partition("scatter(")[2].partition(")")[0])
    shape, axis = _shape(types[names[len(names) // 2]]), _number(r"vector_dim=(\d+)", line)
    return math.prod(size for place, size in enumerate(shape) if place != axis)


def _shape(type_: str) -> list[int]:
    digits = re.search(r"\[([\d,]*)\]", type_)
    return _ints(digits[1]) if digits else []


def _ints(text: str) -> list[int]:
    return [int(x) for x in text.split(",") if x]


def _number(pattern: str, text: str) -> int | None:
    hit = re.search(pattern, text)
    return int(hit[1]) if hit else None


def _places(text: str) -> Callable[[Instruction], str]:
    """Where an instruction stands in this project's code, as FILE:LINE, by the program's frames."""
    head = text.partition("FunctionNames")[0]
    files = dict(re.findall(r'^(\d+) "(.*)"$', head, re.MULTILINE))
    lines = re.findall(r"^(\d+) \{file_name_id=(\d+) .*?\bline=(\d+)", text, re.MULTILINE)
    locations = {number: (files.get(file, ""), line) for number, file, line in lines}
    pattern = r"^(\d+) \{file_location_id=(\d+)(?: parent_frame_id=(\d+))?"
    frames = {number: (at, up) for number, at, up in re.findall(pattern, text, re.MULTILINE)}

    def place(each: Instruction) -> str:
        if direct := re.search(r'source_file="([^"]*)" source_line=(\d+)', each.text):
            file = _SOURCE.search(direct[1])
            return f"{file[1]}:{direct[2]}" if file else ""
        frame = (re.search(r"stack_frame_id=(\d+)", each.text) or ("", ""))[1]
        while frame in frames:
            at, up = frames[frame]
            file, line = locations.get(at, ("", ""))
            if hit := _SOURCE.search(file):
                return f"{hit[1]}:{line}"
            frame = "" if up == frame else up
        return ""

    return place
