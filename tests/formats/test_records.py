"""Lines of record files hold games that come back; bad lines are refused."""

import gzip
import json
from pathlib import Path

import pytest

from tests.support.game.small import SMALL
from wallgo_jax import env
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record, Searched
from wallgo_jax.game.rules import PRESETS

DATA = Path(__file__).parents[1] / "data" / "conformance.jsonl.gz"
# A1, C3, then two walls by each that shut Red in: 1 cell against 8.
FINISHED = [9 * 52 + 0, 9 * 52 + 8, 0 * 52 + 1, 8 * 52 + 0, 0 * 52 + 2]


def test_a_line_of_a_preset():
    record = Record(PRESETS["hkoi"], (2548, 2549))
    assert json.loads(records.to_json(record)) == {
        "variant": "hkoi",
        "actions": [2548, 2549],
        "players": None,
        "result": None,
        "env_version": env.VERSION,
    }


def test_a_line_of_custom_rules_in_a_larger_grid():
    record = Record(
        SMALL,
        [2548],
        grid=7,
        players=["net@32", "random"],
        result=[1, -1],
        values=[None],
        searches=[Searched([2548, 2549], [0.75, 0.2], [3, 1])],
    )
    assert json.loads(records.to_json(record)) == {
        "variant": "custom",
        "rules": {
            "size": 3,
            "players": 2,
            "stones": 1,
            "start": [],
            "order": [0, 1],
            "walls": None,
            "stay_needs_room": False,
            "tie": ["region"],
        },
        "grid": 7,
        "actions": [2548],
        "players": ["net@32", "random"],
        "result": [1, -1],
        "values": [None],
        "searches": [{"actions": [2548, 2549], "shares": [0.75, 0.2], "visits": [3, 1]}],
        "env_version": env.VERSION,
    }
    assert records.from_json(records.to_json(record)) == record


def test_files_come_back(tmp_path):
    some = [Record(SMALL, FINISHED), Record(PRESETS["hkoi"], (2548,), players=("a", "ü"))]
    for name in ("games.jsonl", "games.jsonl.gz"):
        path = tmp_path / name
        records.write(path, some[:1])
        records.write(path, some[1:], append=True)
        assert list(records.read(path)) == some
    assert len(gzip.decompress((tmp_path / "games.jsonl.gz").read_bytes()).splitlines()) == 2


@pytest.mark.parametrize("name", ["games.jsonl", "games.jsonl.gz"])
def test_a_byte_order_mark_is_no_part_of_a_game(tmp_path, name):
    data = b"\xef\xbb\xbf" + records.to_json(Record(SMALL, FINISHED)).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert list(records.read(tmp_path / name)) == [Record(SMALL, FINISHED)]


def test_other_keys_are_kept(tmp_path):
    fields = json.loads(records.to_json(Record(SMALL, FINISHED)))
    notes = {"tree": [{"ply": 1, "plies": []}], "note": "ü", "none": None}
    record = records.from_json(json.dumps(fields | notes))
    records.write(tmp_path / "games.jsonl", [record])
    (line,) = (tmp_path / "games.jsonl").read_text().splitlines()
    assert json.loads(line) == fields | notes
    assert record != Record(SMALL, FINISHED) and len({record, record}) == 1


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({"grid": 3}, "extra: 'grid' is a key of records"),
        ({"variant": "hkoi"}, "extra: 'variant' is a key of records"),
        ({"a": float("nan")}, "other keys: Out of range float values are not JSON compliant"),
        ({"a": {1}}, "other keys: Object of type set is not JSON serializable"),
    ],
)
def test_extra_values_that_no_line_can_hold(extra, reason):
    with pytest.raises(ValueError, match=reason):
        records.to_json(Record(SMALL, FINISHED, extra=extra))


@pytest.mark.parametrize("name", ["games.jsonl", "games.jsonl.gz"])
def test_a_record_that_cannot_be_made_leaves_the_file(tmp_path, name):
    def two():
        yield Record(SMALL, FINISHED)
        raise ValueError("no second one")

    path = tmp_path / name
    records.write(path, [Record(SMALL, FINISHED[:2])])
    for append in (False, True):
        with pytest.raises(ValueError, match="no second one"):
            records.write(path, two(), append=append)
        assert [len(record.actions) for record in records.read(path)] == [2]


@pytest.mark.parametrize(("cut", "kept"), [(0, 2), (1, 2), (2, 1), (60, 1)])
def test_games_are_added_after_whole_lines(tmp_path, cut, kept):
    """The second line with its end, without it, and in part."""
    path, some = tmp_path / "games.jsonl", [Record(SMALL, FINISHED[:n]) for n in range(3)]
    records.write(path, some[:2])
    path.write_bytes(path.read_bytes()[: -cut or None])
    records.write(path, some[2:], append=True)
    assert list(records.read(path)) == [*some[:kept], some[2]]


def test_games_are_added_after_what_a_damaged_file_holds(tmp_path):
    path = tmp_path / "games.jsonl.gz"
    some = [Record(SMALL, FINISHED, players=(f"{n:x}" * 40, "b")) for n in range(200)]
    records.write(path, some)
    path.write_bytes(path.read_bytes()[:-20])
    records.write(path, some[:1], append=True)
    *kept, added = records.read(path)
    assert kept == some[: len(kept)] and len(kept) > 100
    assert added == some[0]


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        ("cut.jsonl.gz", gzip.compress(b"x" * 1000, mtime=0)[:20], 1),
        ("cut.jsonl.gz", gzip.compress(b"\n" * 3, mtime=0)[:-8], 4),  # without checksum and length
        ("broken.jsonl.gz", gzip.compress(b"\n", mtime=0)[:10] + b"\xff" * 9, 1),
        ("plain.jsonl.gz", b"{}", 1),
        ("binary.jsonl", b"\xff\xfe", 1),
    ],
)
def test_damage_names_its_file_and_line(tmp_path, name, data, line):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ValueError) as error:
        list(records.read(path))
    said = "the file is cut short or damaged from here on, or it is no text"
    assert str(error.value) == f"{path}, line {line}: {said}"


def test_files_of_other_tools_are_read(conformance):
    """The conformance games hold keys of their own, no result and no version."""
    read = list(records.read(DATA))
    games = [game for games in conformance.values() for game in games]
    assert [list(record.actions) for record in read] == [game["actions"] for game in games]
    assert read[0].rules == PRESETS["wallzero-4stone"] and read[0].env_version is None
    game = records.replay(read[0])
    assert list(game.rewards) == games[0]["rewards"] and game.is_over
    assert list(game.movers) == games[0]["turns"]


GOOD = {"variant": "custom", "rules": SMALL.to_dict(), "actions": FINISHED}


def searched(**fields) -> dict:
    """A change of a record of five plies: its second ply has a search with some wrong fields."""
    whole = {"actions": [1, 2], "shares": [0.5, 0.25], "visits": None}
    return {"searches": [None, whole | fields, None, None, None]}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"variant": "hex", "rules": None}, "preset"),
        ({"variant": ["hkoi"]}, "name"),
        ({"rules": None}, "'rules'"),
        ({"variant": "hkoi"}, "differ"),
        ({"rules": 3}, "object"),
        ({"rules": {"size": 2}}, "size"),
        ({"actions": None}, "list"),
        ({"actions": "468"}, "list"),
        ({"actions": [468, 1.5]}, "entry 2"),
        ({"actions": [True]}, "entry 1"),
        ({"players": ["a"]}, "players"),
        ({"players": ["a", 1]}, "entry 2"),
        ({"players": ["a\nb", "c"]}, "printable"),
        ({"players": ["a", "\ud83e"]}, "printable"),
        ({"result": [0]}, "result"),
        ({"values": [0.1]}, "not 5"),
        ({"result": [2, -2]}, "entry 1"),
        ({"values": ["x"] * 5}, "'x'"),
        ({"values": [1, -1.01, 0, 0, 0]}, "entry 2"),
        ({"values": [float("nan")] * 5}, "nan"),
        ({"searches": [None]}, "not 5"),
        ({"searches": "x"}, "list"),
        ({"searches": [None, 3, None, None, None]}, "entry 2 is 3"),
        (searched(values=[1]), "object of actions, shares, visits"),
        (searched(actions=[1]), "2 shares, not 1"),
        (searched(actions=[1, 1]), "twice"),
        (searched(actions=[1, -1]), "actions: -1"),
        (searched(shares=[0.5, 1.5]), "shares: 1.5"),
        (searched(shares=[0.8, 0.8]), "more than 1"),
        (searched(visits=[1, 2.5]), "visits: 2.5"),
        (searched(visits="12"), "list"),
        ({"grid": 2}, "grid"),
        ({"grid": "7"}, "grid"),
        ({"env_version": "0\n1"}, "env_version"),
        ({"env_version": 1}, "env_version"),
    ],
)
def test_a_wrong_line_is_refused_by_its_number(tmp_path, change, word):
    path = tmp_path / "games.jsonl"
    path.write_text(json.dumps(GOOD) + "\n\n" + json.dumps(GOOD | change) + "\n")
    with pytest.raises(ValueError) as error:
        list(records.read(path))
    assert str(error.value).startswith(f"{path}, line 3: ")
    assert word in str(error.value)


@pytest.mark.parametrize(
    ("line", "word"),
    [("{", "JSON"), ("[]", "object"), ("{}", "variant"), ('{"variant": "hkoi"}', "actions")],
)
def test_what_is_no_record_is_refused(line, word):
    with pytest.raises(ValueError, match=word):
        records.from_json(line)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"actions": [*FINISHED, 0]}, "ply 6"),
        ({"actions": [0]}, "ply 1"),
        ({"result": (1.0, -1.0)}, "result"),
        ({"actions": FINISHED[:-1], "result": (-1.0, 1.0)}, "goes on"),
        ({"actions": [0], "env_version": "0"}, "version 0"),
    ],
)
def test_a_record_that_the_referee_does_not_follow(changes, word):
    with pytest.raises(ValueError, match=word):
        records.replay(Record(**{"rules": SMALL, "actions": FINISHED, **changes}))
