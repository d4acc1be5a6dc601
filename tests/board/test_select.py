"""Choices by comparison against plain indexing."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

from tests.support import compiling
from wallgo_jax.board import select

VALUES = np.array([7, -3, 0, 12], np.int32)
BOARDS = 4
ROWS = np.random.default_rng(0).normal(size=(BOARDS, 9, 5)).astype(np.float32)
PLACES = np.random.default_rng(1).integers(0, 9, (BOARDS, 3)).astype(np.int32)
TAKEN = np.stack([rows[places, :4] for rows, places in zip(ROWS, PLACES, strict=True)])
FORMS = (select.take, select.take_by_gather, select.take_by_comparison)


def test_picked_and_chosen_values_are_those_at_the_index():
    """Out of range, nothing is picked and the last value is chosen."""

    @jax.jit
    @jax.vmap
    def both(index):
        return select.pick(VALUES, index), select.choose(list(VALUES), index)

    picked, chosen = both(np.arange(-1, 5, dtype=np.int32))
    assert picked.tolist() == [0, 7, -3, 0, 12, 0]
    assert chosen.tolist()[1:] == [7, -3, 0, 12, 12]


def test_nothing_is_gathered():
    program = str(jax.make_jaxpr(select.pick)(VALUES, 1)) + str(
        jax.make_jaxpr(lambda index: select.choose(list(VALUES), index))(1)
    )
    assert "gather" not in program


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16", "uint8", "uint32", "bool"])
def test_rows_are_taken_along_any_axis(form, dtype):
    """One, few and many; the values are no sums, so that each keeps its bits."""
    rng = np.random.default_rng(2)
    values = jnp.asarray(rng.normal(size=(6, 7, 8)) * 99).astype(dtype)
    for axis in range(3):
        for shape in ((), (3,), (2, 2), (20,)):
            index = rng.integers(0, values.shape[axis], shape).astype(np.int16)
            taken = jax.jit(functools.partial(form, axis=axis))(values, index)
            assert taken.dtype == values.dtype
            np.testing.assert_array_equal(taken, np.take(np.asarray(values), index, axis))


@pytest.mark.parametrize("form", FORMS)
def test_several_indices_go_axis_by_axis_or_together(form):
    table = np.arange(2 * 3 * 10, dtype=np.int16).reshape(2, 3, 10)
    last = np.array([[9, 0], [4, 4]])
    taken = jax.jit(form)(table, np.int32(1), np.int8(2), last)
    np.testing.assert_array_equal(taken, table[1, 2][last])
    first = np.array([[1, 0], [0, 1]])  # of one shape: taken together
    together = select.take(table[:, 2], first, last)
    np.testing.assert_array_equal(together, table[first, 2, last])


@pytest.mark.parametrize("form", FORMS)
def test_an_infinite_row_stays_alone(form):
    rows = np.array([[1.0, np.inf], [np.nan, 2.0], [3.0, -np.inf]], np.float32)
    np.testing.assert_array_equal(form(rows, np.array([2, 0, 2, 1], np.int32)), rows[[2, 0, 2, 1]])


def take_all(rows, places):
    """float32[B, 3, 4]: three rows of each board, without their last entry."""
    return jax.vmap(functools.partial(select.take, width=4))(rows, places)


@pytest.mark.parametrize("form", FORMS)
def test_the_gradient_goes_to_the_rows_taken(form):
    """A row that is taken twice gets both."""
    weights = np.random.default_rng(3).normal(size=TAKEN.shape).astype(np.float32)
    places = np.where(PLACES == PLACES[:, :1], PLACES, PLACES[:, 1:2])
    expected = np.zeros_like(ROWS)
    for board in range(BOARDS):
        np.add.at(expected[board, :, :4], places[board], weights[board])

    @jax.jit
    @jax.grad
    def gradient(rows):
        return (jax.vmap(functools.partial(form, width=4))(rows, places) * weights).sum()

    np.testing.assert_allclose(gradient(ROWS), expected, atol=1e-6)


def scanned(rows, places):
    once = rows[None], places[None]
    return jax.lax.scan(lambda _, boards: (_, take_all(*boards)), None, once)[1][0]


def sharded(rows, places):
    mesh = Mesh(jax.devices(), ("board",))
    spec = PartitionSpec("board")
    return jax.shard_map(take_all, mesh=mesh, in_specs=spec, out_specs=spec)(rows, places)


def exported(rows, places):
    """Exported for any number of boards and for several platforms."""
    (size,) = jax.export.symbolic_shape("size")
    like = [jax.ShapeDtypeStruct((size, *x.shape[1:]), x.dtype) for x in (rows, places)]
    platforms = ("cpu", "tpu", "cuda")
    return jax.export.export(jax.jit(take_all), platforms=platforms)(*like).call(rows, places)


def strict(rows, places):
    with jax.numpy_dtype_promotion("strict"):
        return take_all(rows, places)


def donated(rows, places):
    def swap(rows, places):
        return rows.at[:, :3, :4].set(take_all(rows, places)), places

    return jax.jit(swap, donate_argnums=0)(jnp.array(rows), places)[0][:, :3, :4]


@pytest.mark.parametrize("way", [take_all, scanned, sharded, exported, strict, donated])
def test_taken_in_every_way(way):
    np.testing.assert_array_equal(way(ROWS, PLACES), TAKEN)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_only_a_tpu_compares(platform):
    """Forwards and backwards."""

    def both(rows, places):
        taken, back = jax.vjp(lambda rows: take_all(rows, places), rows)
        return back(jnp.sin(taken))

    text = jax.jit(both).trace(ROWS, PLACES).lower(lowering_platforms=(platform,)).as_text()
    for operation in ("stablehlo.gather", "stablehlo.scatter"):
        assert (operation in text) == (platform != "tpu")


def test_a_second_call_outside_of_a_program_compiles_nothing():
    select.take(VALUES, PLACES[0] % 4)
    with compiling.count_compilations() as count:
        select.take(VALUES, PLACES[1] % 4)
    assert count() == 0
