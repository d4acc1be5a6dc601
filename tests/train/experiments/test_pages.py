"""README and docs/ show what the data say."""

import json
import re

import pytest

from train.experiments import pages

ADVICE = "write it by `python -m train.experiments.pages`"


@pytest.mark.parametrize("path", [*pages.pages()], ids=lambda path: path.name)
def test_pages_are_rendered_from_their_data(path):
    text = path.read_text("utf-8")
    assert pages.rendered(text) == text, ADVICE
    assert text.count("<!-- data: ") == text.count("<!-- end -->") or path.name == "study.md"
    # Readers of Markdown take a line that opens with a comment for HTML as a whole.
    assert not re.search(r"^<!-- data: .*<!-- end -->", text, re.MULTILINE)


def test_every_data_file_is_shown_is_small_and_says_what_measured_it():
    shown = {
        name.partition(".")[0]
        for path in pages.pages()
        for name in re.findall(r"<!-- data: (\S+) -->", path.read_text("utf-8"))
    }
    files = {path.stem: path for path in pages.DATA.glob("*.json")}
    records = {path.parents[1].name for path in pages.DATA.glob("*/*/record.json")}
    assert shown == {*files} | records
    for path in files.values():
        assert path.stat().st_size <= 60_000
        measured = json.loads(path.read_text("utf-8"))["measured"]
        assert {"commits", "version", "machines", "command"} <= {*measured}


def test_every_result_page_is_rendered_or_says_that_its_data_are_not_kept():
    for path in (pages.ROOT / "docs/results").glob("*.md"):
        text = path.read_text("utf-8").replace("\n", " ")
        assert "<!-- data: " in text or "*Data not kept" in text or "*Data*: win rates" in text, (
            path
        )


def test_a_place_shows_what_it_names(tmp_path):
    counts = {"won": 3, "drawn": 0, "lost": 1}
    table = {"title": "T", "columns": [["% won", "games"]], "rows": [{"games": counts}]}
    (tmp_path / "a.json").write_text(json.dumps({"tables": {"t": table}}))
    said = {
        name: pages.rendered(f"x <!-- data: {name} -->old<!-- end --> y", tmp_path)
        for name in ("a.t.0.games", "a.t.0.games:mean", "a.t.0.games:ends", "a.t.0.games:counts")
    }
    found = [re.sub("<!--.*?-->", "", text)[2:-2] for text in said.values()]
    assert found == ["75.0 (30.1–95.4)", "75.0", "30.1–95.4", "3, 0, 1"]
    assert "\n\n| % won |\n" in pages.rendered("<!-- data: a.t --><!-- end -->", tmp_path)
    with pytest.raises(KeyError):
        pages.rendered("<!-- data: a.u --><!-- end -->", tmp_path)
