"""README is finished and knows every module."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_nothing_is_left_to_fill_in():
    assert re.findall(r"@[A-Z0-9]+@|TODO|TBD", TEXT) == []


def test_floor_map_names_every_module_of_the_learner():
    floor_map = TEXT[TEXT.index("## Floor map") : TEXT.index("## Guide")]
    words = set(re.findall(r"[a-z_]+", floor_map))
    modules = {path.stem for path in (ROOT / "train").glob("*.py")} - {"__init__", "__main__"}
    assert modules <= words, sorted(modules - words)


def test_every_config_is_there_and_says_how_it_is_run():
    for path in (ROOT / "configs").glob("*.toml"):
        opening = path.read_text(encoding="utf-8").split("\n\n")[0]
        for word in ("command", "hardware", "time", "expected"):
            assert f"#   {word}" in opening, f"{path.name}: {word}"
