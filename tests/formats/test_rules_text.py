"""Rules are read from a preset's name, JSON, TOML and files; what is wrong is said in one line."""

import json

import pytest

from tests.support.game.small import SMALL
from wallgo_jax.formats.rules_text import read_rules
from wallgo_jax.game.rules import PRESETS

FIELDS = {"size": 3, "stones": 1, "order": [0, 1]}
TABLE = "size = 3\nstones = 1\norder = [0, 1]\n"


@pytest.mark.parametrize(
    ("name", "text", "rules"),
    [
        *((name, None, rules) for name, rules in PRESETS.items()),
        (json.dumps(FIELDS), None, SMALL),
        (json.dumps(FIELDS, indent=2), None, SMALL),
        ("{size=3, stones=1, order=[0,1]}", None, SMALL),
        ("a.json", json.dumps(FIELDS), SMALL),
        ("a.json", json.dumps({"rules": FIELDS, "seed": 1}), SMALL),
        ("a.json", json.dumps({"rules": "hkoi"}), PRESETS["hkoi"]),
        ("a.toml", TABLE, SMALL),
        ("a.toml", f'name = "x"\n[rules]\n{TABLE}', SMALL),
        ("a.toml", 'rules = "hkoi"', PRESETS["hkoi"]),
        ("noending", TABLE, SMALL),
        ("noending", json.dumps(FIELDS), SMALL),
        ("hkoi", TABLE, PRESETS["hkoi"]),
        ("a.json", "\ufeff" + json.dumps(FIELDS), SMALL),
        ("a.toml", "\ufeff" + TABLE, SMALL),
    ],
)
def test_a_preset_an_object_or_a_file(tmp_path, name, text, rules):
    if text is not None:
        (tmp_path / name).write_text(text)
    assert read_rules(name) == rules


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("chess", "rules: unknown preset 'chess'; known presets: wallzero-4stone, "),
        ("hkoy", "rules: unknown preset 'hkoy' (did you mean hkoi?); known presets: "),
        ("", "rules: unknown preset ''; known presets: "),
        ("gone.json", "rules: no such file, and unknown preset 'gone.json'; known presets: "),
        ("x" * 5000, "rules: unknown preset 'xxx"),
        ("{", "rules: not JSON: "),
        ('{"size": 2}', "rules: size is 2, not a whole number from 3 to 9"),
        ('{"sise": 3}', "rules: unknown key 'sise'; known keys: size, "),
        ("..", "rules: ..: is a directory, not a JSON or TOML file"),
        ("bad.json", "rules: bad.json: not JSON: "),
        ("bad.toml", "rules: bad.toml: neither JSON nor TOML: "),
        ("binary", "rules: binary: not a text file"),
        ("wrong.toml", "rules: wrong.toml: size is 2, not a whole number from 3 to 9"),
        ("number.json", "rules: number.json: unknown preset '3'; known presets: "),
        ("other.toml", "rules: other.toml: unknown key 'name'; known keys: "),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, text, reason):
    (tmp_path / "bad.json").write_text('{"size": 3')
    (tmp_path / "bad.toml").write_text("size is 3")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "wrong.toml").write_text("rules.size = 2")
    (tmp_path / "number.json").write_text('{"rules": 3}')
    (tmp_path / "other.toml").write_text('name = "x"')
    with pytest.raises(ValueError) as caught:
        read_rules(text)
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value)
