"""The census counts what the network holds, and each kind of block has the size it should."""

import dataclasses

import pytest

from train.network import NetworkConfig, census, count_parameters, make_network
from wallgo_jax import planes as planes_lib

CHANNELS = planes_lib.channels("BTR", 2)
SMALL = NetworkConfig(
    blocks="RT",
    width=8,
    heads=2,
    value_width=8,
    ownership=True,
    margin=True,
    reply=True,
    destination_head=True,
)
VARIANTS = {
    "walled_convolutions": 2,
    "stones_close_gates": True,
    "walking_bias": True,
    "destination_width": 6,
    "destination_rank": 2,
    "destination_path": True,
}


def test_parts_make_the_whole():
    other = dataclasses.replace(SMALL, blocks="WTR", norm="none", value="wdl", reply=False)
    for config in (SMALL, other, dataclasses.replace(other, **VARIANTS)):
        parts = census(config, CHANNELS, size=7)
        shapes = make_network(config, CHANNELS).shapes
        assert sum(part.parameters for part in parts) == count_parameters(shapes)


@pytest.mark.parametrize(
    ("blocks", "millions"), [("R", 1.181), ("T", 0.528)], ids=["residual", "transformer"]
)
def test_blocks_have_the_papers_size(blocks, millions):
    """Table 1 of the ResTNet paper: 9x9, 256 channels, 4 heads. One more block of a kind adds what
    the table's slope and its text say, to the table's three decimals and the bias table's size."""

    def size(text: str) -> int:
        config = NetworkConfig(blocks=text, width=256, heads=4, mlp_ratio=2.0)
        return count_parameters(make_network(config, CHANNELS).shapes)

    assert (size(2 * blocks) - size(blocks)) / 1e6 == pytest.approx(millions, abs=0.001)


def test_walled_block_has_five_matrices_in_place_of_nine():
    def sizes(blocks: str, **options) -> tuple[int, int]:
        part = census(NetworkConfig(blocks=blocks, width=16, **options), CHANNELS, size=7)[1]
        assert part.name == f"block 1 {blocks}"
        return part.parameters, part.multiply_adds

    cells, matrix, norms = 49, 16 * 16, 4 * 16
    assert sizes("R") == (18 * matrix + norms, 18 * matrix * cells)
    assert sizes("W") == (14 * matrix + norms, 14 * matrix * cells)
    assert sizes("W", walled_convolutions=2) == (10 * matrix + norms, 10 * matrix * cells)
