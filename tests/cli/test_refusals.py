"""What the command line refuses: a table of commands, each with a word of the complaint."""

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import CODE, complaint
from tests.support.game.small import EMPTY, SMALL
from wallgo_jax.formats import records

DIAGRAM = f"rules: {json.dumps(SMALL.to_dict())}\n{EMPTY}".replace("1 | .", "1 | R")
PLAYED = "replay moves.txt --rules small.json"

REFUSED = [
    # Commands and options.
    ("", "command"),
    ("draw x", "'draw'"),
    ("shw x", "show?"),
    ("show", "SOURCE"),
    # Sources.
    ("show gone.txt", "gone.txt"),
    ("show A1.txt --rules hkoi", "file"),
    ("show 'A1 C3.v2' --rules hkoi", "file"),
    ("show empty.txt", "empty"),
    ("show moves.txt", "--rules"),
    ("show C3 --rules empty.txt", "empty"),
    ("show bad.txt --rules small.json", "W7"),
    ("show turn.txt --rules small.json", "turn.txt: ply 2"),
    ("show position.txt", "line 2"),
    ("replay diagram.txt", "game"),
    ("replay code.txt", "move 18"),
    ("replay broken.jsonl", "line 2"),
    ("replay binary.dat", "text"),
    ("replay broken.gz", "gzip"),
    # Numbers.
    ("show hkoi --ply 1", "--ply"),
    ("show hkoi --grid 10", "grid"),
    ("show 'A1 J5' --rules hkoi --grid 12", "grid"),
    ("show A1 --rules hkoi --grid 2", "grid"),
    ("show hkoi --game -1", "--game"),
    ("show games.jsonl --game 0", "--game"),
    ("replay games.jsonl --game 3", "2"),
    ("convert games.jsonl --to moves --game -3", "--game"),
    (f"{PLAYED} --seconds 0 --watch", "0.02"),
    (f"{PLAYED} --seconds -5 --out a.svg", "-5"),
    # Pictures and other files.
    ("show hkoi --reach G --out a.svg", "reach"),
    ("show hkoi --out a.bmp", ".svg"),
    ("show hkoi --out binary.dat/a.svg", "binary.dat"),
    ("convert moves.txt --rules small.json --to hkoi", "code"),
    # Options without an effect.
    ("show hkoi --reach B", "--reach"),
    ("show hkoi --theme dark --out a.txt", "--theme"),
    ("show hkoi --diagram --out a.txt", "--diagram"),
    ("replay moves.txt --steps --out a.svg", "--steps"),
    ("replay moves.txt --steps --watch", "--steps"),
    ("replay moves.txt --seconds 5", "--seconds"),
    ("replay moves.txt --seconds -5 --steps", "--seconds"),
    ("replay moves.txt --seconds 5 --out a.txt", "--seconds"),
    ("replay moves.txt --watch --out a.svg", "--watch"),
    ("replay moves.txt --theme light", "--theme"),
    ("show hkoi --rules hkoi", "--rules"),
    ("show hkoi --game 2", "--game"),
    ("show moves.txt --rules small.json --game 2", "--game"),
    ("show code.txt --grid 9", "--grid"),
    ("show games.jsonl --rules hkoi", "--rules"),
    ("show games.jsonl --grid 9", "--grid"),
    ("show drawn.txt --rules hkoi", "--rules"),
    ("show drawn.txt --grid 9", "--grid"),
    ("show drawn.txt --game 2", "--game"),
    ("show drawn.txt --ply 0", "--ply"),
]


@pytest.fixture
def sources(here) -> Path:
    """Sources of every kind, good and bad."""
    good, bad = "A1 C3 ", "A1->A1:W7"
    record = {"variant": "custom", "rules": SMALL.to_dict(), "actions": [0]}
    texts = {
        "bad.txt": good + bad,
        "turn.txt": "R A1 R C3",
        "position.txt": "rules: hkoi\nturns: R\n",
        "diagram.txt": "rules: hkoi\n",
        "drawn.txt": DIAGRAM,
        "code.txt": CODE.read_text().replace("2l4", "214"),
        "broken.jsonl": "\n" + json.dumps(record),
        "empty.txt": "\n",
    }
    for name, text in texts.items():
        (here / name).write_text(text)
    (here / "binary.dat").write_bytes(b"\xff\xfe\x00")
    (here / "broken.gz").write_bytes(b"no gzip")
    records.write(here / "games.jsonl", [records.Record(SMALL, [468])] * 2)
    return here


@pytest.mark.parametrize(("words", "word"), REFUSED)
def test_refused(capsys, sources, words, word):
    assert word in complaint(capsys, *shlex.split(words))
