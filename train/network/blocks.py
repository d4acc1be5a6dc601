"""Parses block strings: `R`, `T` and `W` with counts and brackets, such as `2R1T` or `R3(RRT)`."""

import re

RESIDUAL, TRANSFORMER, WALLED = "R", "T", "W"
MAX_BLOCKS = 200
_COUNT = r"(0*[1-9][0-9]*)"
_REPEATED = re.compile(rf"{_COUNT}([RTW])|{_COUNT}?\(([RTW]+)\)")
"""A counted block, or an innermost bracket with its count."""


def parse_blocks(text: str) -> str:
    """Expand a block string into its blocks, e.g. `2R1T` into `RRT`.

    A count repeats the block or the bracket after it.

    Raises:
      ValueError: it is no block string, or one of more than MAX_BLOCKS.
    """
    # One block too many shows that there are too many.
    most = MAX_BLOCKS + 1

    def repeat(match: re.Match[str]) -> str:
        block, count = match[2] or match[4], match[1] or match[3] or "1"
        return (min(int(count.lstrip("0")[:6]), most) * block)[:most]

    blocks, before = text, ""
    while blocks != before:
        before, blocks = blocks, _REPEATED.sub(repeat, blocks)
    if not re.fullmatch("[RTW]+", blocks):
        raise ValueError(
            f"blocks: {text!r} is not made of R, T and W, counts and brackets, such as 'RRT', "
            "'2R1T' or 'R3(RRT)'"
        )
    if len(blocks) > MAX_BLOCKS:
        raise ValueError(f"blocks: {text!r} has more than {MAX_BLOCKS} blocks")
    return blocks
