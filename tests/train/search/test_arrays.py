"""Both forms of reading and writing a tree's arrays against plain loops; positions as words."""

import itertools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import hashed_game
from train.search import arrays as tree_arrays
from train.search.arrays import pack
from train.search.gumbel import make_gumbel
from train.search.puct import make_puct
from train.search.search import make_engine
from train.search.tree import Budget

BOARDS, PLACES, SLOTS = 5, 7, 3
FORMS = ("tpu", "default")


def draw(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    numbers = np.random.default_rng(seed).integers(-100, 100, shape)
    return (numbers % 2 if dtype is bool else numbers).astype(dtype)


def draw_places(*shape: int, most: int = PLACES, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, most, shape).astype(np.int32)


BY_PLACE = {
    name: draw((BOARDS, PLACES), dtype)
    for name, dtype in (("f", np.float32), ("i", np.int32), ("b", bool), ("u", np.uint8))
}
BY_SLOT = {"u": draw((BOARDS, PLACES, SLOTS), np.uint8), "f": draw((BOARDS, PLACES, 4), np.float32)}


@pytest.fixture(params=FORMS)
def form(request, monkeypatch):
    """All programs take the form of a TPU, or that of other platforms, whatever they run on."""
    use(request.param, monkeypatch)


def use(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = {"tpu": lambda tpu, default: tpu, "default": lambda tpu, default: default}
    monkeypatch.setattr(tree_arrays, "_by_platform", forms[name])


def assert_same(found: Any, expected: Any) -> None:
    for one, other in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def assert_agrees(function: Callable, expected: Any, *arrays: Any) -> None:
    """Jitted, and with the board that it is one of as another axis in front."""
    assert_same(jax.jit(function)(*arrays), expected)
    twice = jax.tree.map(lambda x: np.stack([x, x]), (arrays, expected))
    assert_same(jax.jit(jax.vmap(function))(*twice[0]), twice[1])


def test_entries_read_are_those_of_a_loop(form):
    place, each = draw_places(BOARDS), draw_places(BOARDS, SLOTS)
    rows = range(BOARDS)
    arrays = BY_PLACE | {"by slot": BY_SLOT["f"]}
    at_place = {
        name: np.stack([x[b, place[b]] for b in rows]).astype(x.dtype) for name, x in arrays.items()
    }
    assert_agrees(tree_arrays.read, at_place, arrays, place)
    numbers = {"f": BY_PLACE["f"], "i": BY_PLACE["i"]}
    at_each = {name: np.stack([x[b][each[b]] for b in rows]) for name, x in numbers.items()}
    assert_agrees(tree_arrays.read_each, at_each, numbers, each)
    slot = draw_places(BOARDS, most=SLOTS, seed=2)
    at_slot = np.array([BY_SLOT["u"][b, place[b], slot[b]] for b in rows])
    assert_agrees(tree_arrays.read_slot, at_slot, BY_SLOT["u"], place, slot)


def test_entries_written_are_those_of_a_loop(form):
    place = draw_places(BOARDS)
    place[2] = PLACES  # one past the last
    new = jax.tree.map(lambda x: draw((BOARDS,), x.dtype, seed=3), BY_PLACE)
    expected = jax.tree.map(np.copy, BY_PLACE)
    for name, b in itertools.product(expected, range(BOARDS)):
        if b != 2:
            expected[name][b, place[b]] = new[name][b]
    assert_agrees(tree_arrays.write, expected, BY_PLACE, new, place)
    place[2], slot = 0, draw_places(BOARDS, most=SLOTS, seed=2)
    expected, entry = np.copy(BY_SLOT["u"]), np.arange(BOARDS, dtype=np.int32) + 40
    for b in range(BOARDS):
        expected[b, place[b], slot[b]] = entry[b]
    assert_agrees(tree_arrays.write_slot, expected, BY_SLOT["u"], entry, place, slot)


def test_new_places_are_written_and_others_stay(form):
    """Board 1 stays at place 2, which has been written; the others get place 4."""
    fresh, place = np.int32(4), np.array([4, 2, 4, 4, 4], np.int32)
    arrays = jax.tree.map(np.copy, BY_PLACE | {"by slot": BY_SLOT["f"]})
    for x in arrays.values():
        x[:, fresh:] = 0
    new = {n: draw((BOARDS, *x.shape[2:]), x.dtype, seed=4) for n, x in arrays.items()}
    expected = jax.tree.map(np.copy, arrays)
    for name, x in arrays.items():
        new[name][1] = x[1, 2]
        expected[name][place == fresh, fresh] = new[name][place == fresh]
    assert_agrees(tree_arrays.write_new, expected, arrays, new, place, fresh)


def test_rows_of_some_boards_are_read_and_written_alone(form):
    boards, place, new = jnp.array([[3, 0], [6, 1], [7, 8]], jnp.int32)
    array = jnp.asarray(BY_PLACE["i"])
    assert_same(tree_arrays.read(array, place, boards), array[boards, place])
    expected = np.copy(BY_PLACE["i"])
    expected[boards, place] = new
    assert_same(tree_arrays.write(array, new, place, boards), expected)
    assert_same(tree_arrays.write_new(array, new, place, place, boards), expected)


BUDGETS = Budget(24, True), Budget(9, False)
SEARCHES = {
    "gumbel": (
        make_engine(hashed_game.GUMBEL, explores=True),
        hashed_game.roots(hashed_game.GUMBEL_BOARDS),
    ),
    "puct": (
        make_engine(hashed_game.PUCT, explores=True),
        hashed_game.roots(hashed_game.PUCT_BOARDS),
    ),
    "gumbel, few of many": (
        make_gumbel(hashed_game.GUMBEL, BUDGETS),
        hashed_game.roots(hashed_game.GUMBEL_BOARDS)._replace(budget=np.int32(1)),
    ),
    "puct, few of many": (
        make_puct(hashed_game.PUCT, BUDGETS),
        hashed_game.roots(hashed_game.PUCT_BOARDS)._replace(budget=np.int32(1)),
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_in_both_forms_grow_the_same_trees(name, monkeypatch):
    choose, root = SEARCHES[name]
    found = {}
    for form in FORMS:
        use(form, monkeypatch)
        found[form] = hashed_game.compiled(choose)(jax.random.key(hashed_game.SEED), root)
    assert_same(found["tpu"], found["default"])
    # Finished games were visited again, and boards are of different depth.
    tree = found["default"].tree
    assert (jnp.where(tree.discounts == 0, tree.visits, 0) > 1).any()
    assert len(set((tree.visits > 0).sum(axis=1).tolist())) > 1


def test_a_program_takes_the_form_of_its_platform():
    """Found when it is lowered, for a platform that is not there too."""
    program = jax.jit(
        lambda array, place: tree_arrays.write(array, tree_arrays.read(array, place) + 1, place)
    ).trace(BY_PLACE["i"], draw_places(BOARDS))
    for platform, scatters in (("tpu", False), ("cuda", True), ("cpu", True)):
        text = program.lower(lowering_platforms=(platform,)).as_text()
        assert ("scatter" in text, "gather" in text) == (scatters, scatters)


@pytest.mark.parametrize(
    ("dtype", "count"),
    [(bool, 5), (np.int8, 12), (np.uint8, 1), (np.int16, 3), (np.float32, 2), (np.uint32, 2)],
)
def test_arrays_come_out_of_words_as_they_went_in(dtype, count):
    """Two by two with others, of each of some boards, and of those at an index."""
    tree = (
        draw((BOARDS, count), dtype),
        {"one": draw((BOARDS,), np.int16)},
        draw((BOARDS, 2, 3), bool),
    )
    packed = jax.jit(pack)(tree)
    assert_same(jax.jit(lambda packed: packed[...])(packed), tree)
    index = np.array([[4, 0], [1, 1]])
    assert_same(packed[index], jax.tree.map(lambda x: x[index], tree))


def test_bits_of_numbers_are_kept():
    numbers = np.array([[-0.0, np.nan, np.inf]], np.float32)
    found = pack(numbers)[...]
    assert found.tobytes() == numbers.tobytes()
    with jax.enable_x64(True):
        wide = np.array([[-1, 2**40]]), np.array([0.1])
        assert_same(pack(wide)[...], wide)


def test_words_hold_bytes_as_drawn():
    """The picture of `train.search.arrays`."""
    drawn = re.findall(r"word \d +((?:b\d+ ?)+)", tree_arrays.__doc__ or "")
    expected = [[int(x) for x in line.replace("b", "").split()] for line in drawn]
    packed = jax.device_get(pack(np.arange(12, dtype=np.uint8)[None]).words)
    shown = [[int(word) >> 8 * place & 255 for place in range(4)] for word in packed[0]]
    assert shown == expected
