"""Parses block strings: `R`, `T` and `W` with counts and brackets, such as `2R1T` or `R3(RRT)`."""

RESIDUAL, TRANSFORMER, WALLED = "R", "T", "W"
LETTERS = (RESIDUAL, TRANSFORMER, WALLED)
MAX_BLOCKS = 200


def parse_blocks(text: str) -> str:
    """Expand a block string into its blocks, e.g. `2R1T` into `RRT`.

    A count repeats the block or the bracket after it.

    Raises:
      ValueError: in one line, with the character that is wrong and its place (from 1).
    """
    blocks, end = _parse_sequence(text, 0, depth=0)
    if end < len(text):
        raise ValueError(_complaint(text, end, "closes no bracket"))
    if not blocks:
        raise ValueError(f"blocks: {text!r} names no block; use R, T and W, as in 'RRT' or '2R1T'")
    if len(blocks) > MAX_BLOCKS:
        raise ValueError(f"blocks: {text!r} has {len(blocks)} blocks, more than {MAX_BLOCKS}")
    return blocks


def _parse_sequence(text: str, place: int, *, depth: int) -> tuple[str, int]:
    blocks = ""
    while place < len(text) and text[place] != ")":
        count, place = _parse_count(text, place)
        if place == len(text):
            raise ValueError(f"blocks: {text!r} ends after a count; R, T, W or ( must follow")
        if text[place] == "(":
            if depth == MAX_BLOCKS:
                raise ValueError(_complaint(text, place, "nests brackets too deep"))
            inner, end = _parse_sequence(text, place + 1, depth=depth + 1)
            if end == len(text):
                raise ValueError(_complaint(text, place, "is never closed"))
            if not inner:
                raise ValueError(_complaint(text, place, "holds no block"))
            blocks, place = blocks + count * inner, end + 1
        elif text[place] in LETTERS:
            blocks, place = blocks + count * text[place], place + 1
        else:
            raise ValueError(_complaint(text, place, "is not R, T, W, a count or ("))
        if len(blocks) > MAX_BLOCKS:
            raise ValueError(f"blocks: {text!r} has more than {MAX_BLOCKS} blocks")
    return blocks, place


def _parse_count(text: str, place: int) -> tuple[int, int]:
    start = place
    while place < len(text) and text[place] in "0123456789":
        place += 1
    if start == place:
        return 1, place
    count = int(text[start:place][:6])
    if count == 0:
        raise ValueError(_complaint(text, start, "repeats nothing"))
    return count, place


def _complaint(text: str, place: int, what: str) -> str:
    return f"blocks: {text!r}: {text[place]!r} at place {place + 1} {what}"
