"""A host's replay is sampled while the devices learn: what is started and waited for, in order."""

import jax
import pytest

from train.loop.compiled_step import learn_ahead


@pytest.fixture
def events(monkeypatch):
    """What happens, in order."""
    happened = []
    monkeypatch.setattr(jax, "block_until_ready", lambda seen: happened.append(f"await {seen}"))
    return happened


def learned(events, steps: int) -> tuple[str, list[str]]:
    def sample(index: int) -> str:
        events.append(f"sample {index}")
        return f"batch {index}"

    def learn_from(state: str, batch: str, index: int) -> tuple[str, str]:
        events.append(f"learn from {batch}")
        return f"{state}{index}", f"step {index}"

    return learn_ahead("state ", steps, sample, learn_from)


def test_the_next_batch_is_sampled_before_a_step_is_waited_for(events):
    assert learned(events, 3) == ("state 012", ["step 0", "step 1", "step 2"])
    assert events == [
        "sample 0",
        "learn from batch 0",
        "sample 1",
        "learn from batch 1",
        "sample 2",
        "await step 0",
        "learn from batch 2",
        "await step 1",
    ]


@pytest.mark.parametrize("steps", [0, 1])
def test_no_batch_is_sampled_in_vain(events, steps):
    _, seen = learned(events, steps)
    assert len(seen) == steps
    assert [event for event in events if "sample" in event] == ["sample 0"] * steps
