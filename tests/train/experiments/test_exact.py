"""Questions to proof numbers end after their minutes, go on, and are kept once decided."""

from train.experiments import exact
from train.experiments.lib.scales import read_scales
from train.experiments.lib.work import Work
from train.solver.boards import WIN

LARGE = {"size": 4, "stones": 2, "order": [0, 1, 1, 0]}
SMALL = exact.Rules(size=3, stones=1, order=(0, 1))


def make_work(folder, **fields) -> Work:
    scale = {"boards": [LARGE], "asked": ["draw"], "minutes": 1e-6, "entries": 1 << 12}
    return Work(read_scales({"exact": scale | fields}), folder)


def test_question_goes_on_where_it_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(exact, "_NODES", 100)
    rows = [exact.report(make_work(tmp_path)).tables[0].rows[0] for _ in range(2)]
    assert [row[3] for row in rows] == ["not decided"] * 2
    assert 100 <= int(rows[0][4]) < 200 <= int(rows[1][4]) < 300


def test_decided_question_is_kept(tmp_path, monkeypatch):
    work = make_work(tmp_path, minutes=1.0)
    first = exact._search(work, SMALL, 0, WIN)
    assert first["holds"] and [cell for cell in range(9) if first["placements"][cell]] == [4]
    monkeypatch.setattr(exact, "Claim", None)
    assert exact._search(work, SMALL, 0, WIN) == first
