"""The census counts what the network holds, and a walled block has the size it should."""

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


@pytest.mark.parametrize("options", [{}, {"norm": "none", "value": "wdl", **VARIANTS}])
def test_parts_make_the_whole(options):
    config = dataclasses.replace(SMALL, **options, blocks="WTR" if options else "RT")
    parts = census(config, CHANNELS, size=7)
    shapes = make_network(config, CHANNELS).shapes
    assert sum(part.parameters for part in parts) == count_parameters(shapes)


def test_walled_block_has_five_matrices_in_place_of_nine():
    def sizes(blocks: str, **options) -> list[tuple[str, int, int]]:
        config = NetworkConfig(blocks=blocks, width=16, **options)
        parts = census(config, CHANNELS, size=7)[1 : 1 + len(blocks)]
        return [(part.name, part.parameters, part.multiply_adds) for part in parts]

    cells, matrix, norms = 49, 16 * 16, 4 * 16
    assert sizes("RW") == [
        ("block 1 R", 18 * matrix + norms, 18 * matrix * cells),
        ("block 2 W", 14 * matrix + norms, 14 * matrix * cells),
    ]
    assert sizes("W", walled_convolutions=2) == [
        ("block 1 W", 10 * matrix + norms, 10 * matrix * cells)
    ]
