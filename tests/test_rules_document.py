"""The tables of RULES.md are those of the code."""

import re
from pathlib import Path

import pytest

import wallgo_jax
from wallgo_jax import notation
from wallgo_jax import planes as planes_lib
from wallgo_jax.board.geometry import MOVE_OFFSETS, SIDE_OFFSETS
from wallgo_jax.notation import COLOURS, LETTERS, parse_cell

TEXT = (Path(wallgo_jax.__file__).parent / "RULES.md").read_text(encoding="utf-8")


def rows(heading):
    """The cells of the table whose first column has this heading."""
    lines = TEXT.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    table = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return table
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


def test_presets():
    table = {row[0].strip("`"): row[1:] for row in rows("preset")}
    assert list(table) == list(wallgo_jax.PRESETS)
    for name, rules in wallgo_jax.PRESETS.items():
        players, stones, start, order, walls, stay, tie = table[name]
        assert (int(players), int(stones)) == (rules.players, rules.stones)
        assert [LETTERS.index(letter) for letter in order.split()] == list(rules.order)
        assert walls == ("no limit" if rules.walls is None else str(rules.walls))
        assert stay == ("needs room" if rules.stay_needs_room else "always")
        assert tie == (", ".join(rules.tie) or "none")
        placed = set()
        for colour, cells in re.findall(r"(Red|Blue) ((?:[A-G]\d ?)+)", start):
            for cell in cells.split():
                placed.add((*divmod(parse_cell(cell, grid=7), 7), COLOURS.index(colour)))
        assert placed == set(rules.start)
        assert rules.size == 7


def test_moves():
    (downs, rights) = (row[1:] for row in rows("move"))
    assert [(int(r), int(c)) for r, c in zip(downs, rights, strict=True)] == list(MOVE_OFFSETS)


def test_pictures_of_moves_and_sides():
    lines = TEXT.splitlines()
    top = next(i for i, line in enumerate(lines) if line.split()[:5] == [".", ".", "5", ".", "."])
    for row in range(5):
        for column, drawn in enumerate(lines[top + row].split()[:5]):
            offset = (row - 2, column - 2)
            wanted = str(MOVE_OFFSETS.index(offset)) if offset in MOVE_OFFSETS else "."
            assert drawn == wanted
    side_rows = [lines[top + row].split()[5:] for row in (1, 2, 3)]
    assert [row[-1] for row in side_rows] == ["0", "1", "2"]
    assert side_rows[1][-3:] == ["3", "c", "1"]
    assert [SIDE_OFFSETS[side] for side in range(4)] == [(-1, 0), (0, 1), (1, 0), (0, -1)]


@pytest.mark.parametrize("planes", planes_lib.PLANE_SETS)
def test_planes(planes):
    table = planes_lib.channels(planes, 2)
    documented = []
    for span, kind, _, sets in rows("planes"):
        if planes.rstrip("DLWV") in sets.split():
            first, last = int(span.split("-")[0]), int(span.split("-")[-1])
            assert first == len(documented)
            documented += [kind] * (last - first + 1)
    before = len(documented) if "H" not in planes else documented.index("history")
    letters = {"D": "distance plane", "L": "longer plane", "W": "walking plane"}
    headings = [heading for letter, heading in letters.items() if letter in planes]
    distances = [kind for each in headings for kind, *_ in rows(each) for _ in range(2)]
    documented[before:before] = distances
    if planes.endswith("V"):
        for kind, of, _ in rows("variant plane"):
            documented += [kind] * (2 if of == "each player" else 1)
    assert len(documented) == len(table)
    for kind, channel in zip(documented, table, strict=True):
        assert channel.kind == kind or (kind == "history" and channel.age > 0)


def test_no_section_is_cited_that_is_not_there():
    sections = [int(number) for number in re.findall(r"^## (\d+)\.", TEXT, re.MULTILINE)]
    assert sections == list(range(1, 8))
    assert {int(number) for number in re.findall(r"section (\d+)", TEXT)} <= set(sections)


def test_names_of_sides():
    words, arrows, canonical = ([cell.strip("`") for cell in row[1:]] for row in rows("side"))
    assert words == list(notation.SIDE_WORDS) and arrows == list(notation.SIDE_ARROWS)
    assert canonical == list(notation.CANONICAL_SIDES)
