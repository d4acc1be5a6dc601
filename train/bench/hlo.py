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
_CONDITIONS, _INDEXED = ("while", "conditional"), ("gather", "scatter")
_CALLED = re.compile(
    r"(?:calls|to_apply|condition|body|true_computation|false_computation)=%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_ARRAY = re.compile(r"([a-z]+)(\d*)\w*\[([\d,]*)\](?:\{([\d,]*)(?::T\(([\d,]*)\))?)?")
_LARGE = 2**20
"""Bytes as laid out from which an array's padding counts."""


class Instruction(NamedTuple):
    """An instruction of a program."""

    name: str
    kind: str  # its opcode, such as `fusion`
    type: str  # shape and layout of its result
    indices: int  # that its gathers and scatters read
    text: str

    @property
    def cycles(self) -> int:
        """The compiler's estimate; 0 where it has none."""
        return _number(r'"estimated_cycles":"(\d+)"', self.text) or 0


class Bytes(NamedTuple):
    """Bytes of large arrays."""

    elements: int
    laid_out: int  # in tiles, as they lie in the memory


class Loop(NamedTuple):
    """A loop, or the whole program, which is a loop of one turn."""

    name: str
    place: str  # FILE:LINE of this project; empty where the compiler made it
    turns: int | None  # None where data end it
    is_read: bool  # whether the host of a GPU reads its condition, once a turn
    branches_read: int  # conditionals of a turn whose condition the host reads
    kernels: tuple[Instruction, ...]  # of a turn; here and below those of inner loops are left out
    counts: Counter[str]  # by opcode, those inside kernels included; indices of `gather indices`
    carried: Bytes  # by the loop; of the whole program its arguments
    inner: tuple["Loop", ...]

    def cycles(self, an_index: float) -> float:
        """Estimate of a turn's kernels, with that many cycles for each index that they read."""
        return sum(each.cycles + an_index * each.indices for each in self.kernels)

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


class HloProgram(NamedTuple):
    """A program's computations by their names."""

    computations: dict[str, list[Instruction]]
    entry: str
    place: Callable[[Instruction], str]
    """Where an instruction stands in this project's code, as FILE:LINE."""


def read_program(text: str) -> HloProgram:
    """Read what `jax.stages.Compiled.as_text` returns."""
    computations: dict[str, list[Instruction]] = {}
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
            current.append(Instruction(name, kind, type_, _indices(kind, type_, line, types), line))
    return HloProgram(computations, entry, _places(text))


def read_loops(program: HloProgram, read_by_host: frozenset[str] = frozenset()) -> Loop:
    """The whole program with all its loops.

    Args:
      read_by_host: names of loops and conditionals, as `conditions_outside_graphs` finds them; of
        the loops those count that data end.
    """

    def read(names: list[str], at: Instruction | None) -> Loop:
        walked = [entry for name in names for entry in _walk(program, name)]
        counts = Counter(each.kind for each, _ in walked)
        for each, _ in walked:
            if each.kind in _INDEXED:
                counts[f"{each.kind} indices"] += each.indices
        arguments = [x for x in program.computations[names[0]] if x.kind == "parameter"]
        branches = [each.name for each, _ in walked if each.kind == "conditional"]
        loops = [each for each, _ in walked if each.kind == "while"]
        turns = _turns(program, at) if at else 1
        return Loop(
            name=at.name if at else "whole program",
            place=program.place(at) if at else "",
            turns=turns,
            is_read=at is not None and turns is None and at.name in read_by_host,
            branches_read=sum(name in read_by_host for name in branches),
            kernels=tuple(each for each, is_kernel in walked if is_kernel),
            counts=counts,
            carried=bytes_of(" ".join(each.type for each in ([at] if at else arguments))),
            inner=tuple(read(_called(each)[:2], each) for each in loops),
        )

    return read([program.entry], None)


def conditions_outside_graphs(program: HloProgram, thunks: str) -> frozenset[str]:
    """Names of the loops and conditionals of a GPU's program that no CUDA graph holds.

    Args:
      thunks: XLA's dump of what the host does, in the order of the program; where it is empty or of
        another program, no graph is known and all are outside.
    """
    held, inside = [], math.inf
    for margin, kind in re.findall(r"^( *)\d+: (k\w+)", thunks, re.MULTILINE):
        inside = inside if len(margin) > inside else math.inf
        if kind in ("kWhile", "kConditional"):
            held.append(inside < math.inf)
        elif kind == "kCommandBuffer":
            inside = min(inside, len(margin))
    names = [*_conditions(program, program.entry)]
    if len(names) != len(held):
        return frozenset(names)
    return frozenset(name for name, is_held in zip(names, held, strict=True) if not is_held)


def bytes_of(type_: str) -> Bytes:
    """Bytes of the large arrays of a type, by their elements and by their tiles."""
    total = Bytes(0, 0)
    for letters, bits, shape, order, tile in _ARRAY.findall(type_):
        sizes, width = _ints(shape), 8 if letters == "pred" else int(bits or 0)
        padded = [sizes[axis] for axis in _ints(order)]  # from the fastest axis on
        steps = [*reversed(_ints(tile)), *(1 for _ in padded)]
        padded = [-(-size // step) * step for size, step in zip(padded, steps, strict=False)]
        elements = math.prod(sizes) * width // 8
        laid_out = math.prod(padded) * width // 8 if padded else elements
        if laid_out >= _LARGE:
            total = Bytes(total.elements + elements, total.laid_out + laid_out)
    return total


def _walk(
    program: HloProgram, name: str, *, is_kernel: bool = True
) -> Iterator[tuple[Instruction, bool]]:
    """Instructions of a computation and of those that it calls, loops left out, each with whether
    it is a kernel; a kernel has the indices of all that it holds."""
    for each in program.computations[name]:
        holds_kernels = is_kernel and each.kind in ("call", "conditional")
        called = _called(each) if each.kind in _CALLS else ()
        inside = [x for inner in called for x in _walk(program, inner, is_kernel=holds_kernels)]
        if is_kernel and each.kind not in _FREE:
            held = sum(x.indices for x, _ in inside if x.kind in _INDEXED)
            yield each._replace(indices=each.indices + held), True
        else:
            yield each, False
        yield from inside


def _conditions(program: HloProgram, name: str) -> Iterator[str]:
    """Names of the loops and conditionals of a computation, inner ones after the outer."""
    for each in program.computations[name]:
        if each.kind in _CONDITIONS:
            yield each.name
        if each.kind in (*_CONDITIONS, "call"):
            for inner in _called(each):
                yield from _conditions(program, inner)


def _called(each: Instruction) -> list[str]:
    branches = "".join(_BRANCHES.findall(each.text))
    return _CALLED.findall(each.text) + re.findall(r"%([\w.\-]+)", branches)


def _turns(program: HloProgram, loop: Instruction) -> int | None:
    """The turns that the compiler knows, or those of a condition that compares with a constant."""
    known = _number(r'known_trip_count":\{"n":"(\d+)"', loop.text)
    condition = program.computations[_called(loop)[0]]
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


def _places(text: str) -> Callable[[Instruction], str]:
    source = re.compile(r"((?:train|wallgo_jax)/[\w/]+\.py)$")
    head = text.partition("FunctionNames")[0]
    files = dict(re.findall(r'^(\d+) "(.*)"$', head, re.MULTILINE))
    lines = {
        number: (files.get(file, ""), line)
        for number, file, line in re.findall(
            r"^(\d+) \{file_name_id=(\d+) .*?\bline=(\d+)", text, re.MULTILINE
        )
    }
    frames = {
        number: (at, up)
        for number, at, up in re.findall(
            r"^(\d+) \{file_location_id=(\d+)(?: parent_frame_id=(\d+))?", text, re.MULTILINE
        )
    }

    def place(each: Instruction) -> str:
        if direct := re.search(r'source_file="([^"]*)" source_line=(\d+)', each.text):
            file = source.search(direct[1])
            return f"{file[1]}:{direct[2]}" if file else ""
        frame = (re.search(r"stack_frame_id=(\d+)", each.text) or ("", ""))[1]
        while frame in frames:
            at, up = frames[frame]
            file, line = lines.get(at, ("", ""))
            if hit := source.search(file):
                return f"{hit[1]}:{line}"
            frame = "" if up == frame else up
        return ""

    return place


def _shape(type_: str) -> list[int]:
    digits = re.search(r"\[([\d,]*)\]", type_)
    return _ints(digits[1]) if digits else []


def _ints(text: str) -> list[int]:
    return [int(x) for x in text.split(",") if x]


def _number(pattern: str, text: str) -> int | None:
    hit = re.search(pattern, text)
    return int(hit[1]) if hit else None
