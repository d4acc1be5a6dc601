"""Pages of topics that train: which interval they say that they have."""

import itertools

import pytest

from tests.support.learner import tiny
from train.study.frame.pieces import Pieces
from train.study.frame.variants import Meeting, Trained
from train.study.frame.work import Work, no_task
from train.study.scale.reading import scale_from_dict
from train.study.trainings import blocks, features, transfer
from train.study.trainings.transfer import CurvePoint

CONFIG = {"rules": tiny.RULES.to_dict(), "network": {"width": 8, "value_width": 8}}
TOPICS = {
    "features": (features, {"planes": ["B", "BT", "BTR", "BTRH", "BTRD"], "blocks": ["R", "W"]}),
    "blocks": (blocks, {"blocks": ["R", "W"]}),
    "transfer": (transfer, {"cases": [{"name": "case"}], "opponent": "random"}),
}
ONE, SEVERAL = "Wilson's over the games of one seed", "Student's t over seeds"


@pytest.fixture
def stand_ins(monkeypatch):
    """Trainings of a minute, and matches that the first of a pair wins with 3 of 4 games."""

    def train_all(work, variants, *, seeds):
        return {
            variant.name: [Trained(60.0, 3, 4, f"{variant.name}-{seed}") for seed in range(seeds)]
            for variant in variants
        }

    def round_robin(work, variants, trained, **settings):
        return [
            Meeting(one.name, other.name, seed, 3, 0, 1)
            for one, other in itertools.combinations(variants, 2)
            for seed in range(len(trained[one.name]))
        ]

    for module, _ in TOPICS.values():
        monkeypatch.setattr(module, "train_all", train_all)
        monkeypatch.setattr(module, "round_robin", round_robin)
    monkeypatch.setattr(
        blocks, "move_costs", lambda work, variants, trained: dict.fromkeys("RW", 1)
    )
    curve = [CurvePoint(1.0, 0.5), CurvePoint(2.0, 0.75)]
    monkeypatch.setattr(transfer, "_curve", lambda work, run: curve)


def words_of(page) -> str:
    """All that a page and its pictures say."""
    found = [*page.text]
    for table in page.tables:
        found += [table.title, *table.heads]
    for picture in page.pictures:
        (axes,) = picture.figure.axes
        found += [picture.caption, axes.get_title("left"), axes.get_xlabel(), axes.get_ylabel()]
    return "\n".join(found)


@pytest.mark.parametrize(
    ("topic", "seeds", "said"),
    [("features", 3, SEVERAL), ("blocks", 1, ONE), ("transfer", 1, ONE), ("transfer", 3, SEVERAL)],
)
def test_pages_say_what_their_intervals_are_over(topic, seeds, said, stand_ins, tmp_path):
    module, own = TOPICS[topic]
    fields = own | {"seeds": seeds, "config": CONFIG, "opening_plies": 0}
    scale = scale_from_dict({topic: fields}, where="s")
    found = words_of(module.report(Work(scale, Pieces(tmp_path, where="here"), no_task)))
    assert f"Intervals are {said}." in found
    others = ("Student", "over seeds", " seeds") if seeds == 1 else ("Wilson", "of one seed.")
    assert not [word for word in others if word in found]
    assert f"95 % {'over the games of one seed' if seeds == 1 else 'over seeds'}" in found
