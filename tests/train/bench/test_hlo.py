"""The reader of compiled programs: loops with their turns, kernels, indices, tiles, CUDA graphs."""

import jax
import jax.numpy as jnp
import pytest

from train.bench import hlo


def _by_depth(loop):
    return [(depth, each.turns) for depth, _, each in loop.rows(1)]


def test_loops_of_a_compiled_function():
    """Five turns hold three, and a loop that data end; what a loop calls is part of its turn."""

    def thrice(x):
        return jax.lax.fori_loop(0, 3, lambda _, y: jnp.sin(y) @ jnp.cos(y).T @ y, x)

    def program(x, limit):
        def turn(_, y):
            y = jax.lax.while_loop(lambda z: jnp.vdot(z, z) < limit, lambda z: jnp.tanh(z @ y), y)
            return thrice(y)

        return jax.lax.fori_loop(0, 5, turn, x)

    compiled = jax.jit(program).lower(jnp.ones((4, 4)), 1.0).compile()
    whole = hlo.read_loops(hlo.read_program(compiled.as_text()))
    assert sorted(_by_depth(whole), key=str) == [(0, 1), (1, 5), (2, 3), (2, None)]
    (outer,) = whole.inner
    assert len(outer.kernels) > 0
    # Two turns stand for those that data end: 5 × (1 + 3 + 2), and the whole.
    assert whole.total(lambda loop: 1, turns=2) == 1 + 5 * (1 + 3 + 2)


def test_indices_of_a_gather_in_a_called_computation():
    """Each of the seven places is an index, whatever its row's length."""

    def program(table, places):
        return jax.lax.fori_loop(0, 2, lambda i, sums: sums + table[places + i].sum(), 0.0)

    like = jnp.ones((50, 4)), jnp.arange(7)
    text = jax.jit(program).lower(*like).compile().as_text()
    whole = hlo.read_loops(hlo.read_program(text))
    indices = [each.counts["gather indices"] for _, _, each in whole.rows(1)]
    assert sum(indices) == 7 and max(indices) == 7
    assert sum(sum(kernel.indices for kernel in each.kernels) for _, _, each in whole.rows(1)) == 7


TEXT = """HloModule jit_f

FileNames
1 "/home/me/train/search/tree.py"
2 "/home/me/jax/library.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=18 end_line=18 column=2 end_column=29}
2 {file_name_id=2 function_name_id=1 line=14 end_line=14 column=11 end_column=41}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

%held (p.1: f32[9,5,4], p.2: s32[6,2], p.3: f32[6,4]) -> f32[9,5,4] {
  %p.1 = f32[9,5,4]{2,1,0} parameter(0)
  %p.2 = s32[6,2]{1,0} parameter(1)
  %p.3 = f32[6,4]{1,0} parameter(2)
  ROOT %scatter.1 = f32[9,5,4]{2,1,0} scatter(%p.1, %p.2, %p.3), update_window_dims={1}, \
inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=%add
}

%body (p.4: f32[9,5,4]) -> f32[9,5,4] {
  %p.4 = f32[9,5,4]{2,1,0} parameter(0)
  ROOT %fusion.1 = f32[9,5,4]{2,1,0} fusion(%p.4), kind=kLoop, calls=%held, \
metadata={op_name="a" stack_frame_id=2}, backend_config={"estimated_cycles":"1000"}
}

%condition (p.5: f32[9,5,4]) -> pred[] {
  %p.5 = f32[9,5,4]{2,1,0} parameter(0)
  ROOT %compare.1 = pred[] fusion(%p.5), kind=kLoop, calls=%never
}

%never (p.6: f32[9,5,4]) -> pred[] {
  %p.6 = f32[9,5,4]{2,1,0} parameter(0)
  ROOT %constant.1 = pred[] constant(false)
}

ENTRY %main (p.7: f32[9,5,4]) -> f32[9,5,4] {
  %p.7 = f32[9,5,4]{2,1,0} parameter(0)
  %while.1 = f32[9,5,4]{2,1,0} while(%p.7), condition=%condition, body=%body
  ROOT %while.2 = f32[9,5,4]{2,1,0} while(%while.1), condition=%condition, body=%body, \
backend_config={"known_trip_count":{"n":"12"}}
}
"""


def test_scatter_cycles_and_place_in_a_fusion():
    program = hlo.read_program(TEXT)
    by_data, known = hlo.read_loops(program).inner
    assert (by_data.turns, known.turns) == (None, 12)
    kernels = {kernel.name: kernel for kernel in known.kernels}
    assert set(kernels) == {"fusion.1", "compare.1"}
    assert (kernels["fusion.1"].cycles, kernels["fusion.1"].indices) == (1000, 6)
    assert known.counts["scatter"] == 1 and known.counts["scatter indices"] == 6
    # The frame of a library stands for the project's frame above it.
    assert program.place(kernels["fusion.1"]) == "train/search/tree.py:18"
    assert program.place(kernels["compare.1"]) == ""


def test_turns_of_a_condition_that_compares_with_a_constant():
    """A TPU's compiler does not write the turns of the loops that it makes."""
    below = TEXT.replace(
        "ROOT %compare.1 = pred[] fusion(%p.5), kind=kLoop, calls=%never",
        "%constant.2 = s32[] constant(1024)\n"
        "  ROOT %compare.1 = pred[] compare(%p.5, %constant.2), direction=LT",
    )
    turns = [loop.turns for loop in hlo.read_loops(hlo.read_program(below)).inner]
    assert turns == [1024, 12]


OUTSIDE = "001: kWhile [a]\ncondition:\n  002: kKernel x\n003: kWhile [b]\n"
FIRST_HELD = "000: kCommandBuffer [a]\n    001: kWhile [a]\n        002: kKernel x\n003: kWhile\n"


@pytest.mark.parametrize(
    ("thunks", "read"), [(OUTSIDE, True), (FIRST_HELD, False), ("", True), ("001: kWhile\n", True)]
)
def test_conditions_that_the_host_reads(thunks, read):
    """A loop of known turns is never asked, and one in a CUDA graph asks the device."""
    program = hlo.read_program(TEXT)
    outside = hlo.conditions_outside_graphs(program, thunks)
    assert ("while.1" in outside) == read and "while.2" in outside
    assert [loop.is_read for loop in hlo.read_loops(program, outside).inner] == [read, False]


@pytest.mark.parametrize(
    ("type_", "elements", "laid_out"),
    [
        ("f32[1024,1024]{1,0}", 4, 4),
        ("f32[1024,2,512]{2,1,0:T(8,128)}", 4, 16),  # two rows in a tile of eight
        ("f32[512,1024,2]{0,1,2:T(8,128)S(1)}", 4, 4),
        ("bf16[1048576,2]{1,0:T(8,128)(2,1)}", 4, 256),
        ("pred[4,1048576]{1,0:T(4,128)(4,1)}", 4, 4),
        ("(s32[], /*index=1*/f32[1024,1024]{1,0:T(8,128)}, u8[9]{0})", 4, 4),  # small ones left out
    ],
)
def test_bytes_in_tiles(type_, elements, laid_out):
    assert hlo.bytes_of(type_) == hlo.Bytes(elements * 2**20, laid_out * 2**20)
