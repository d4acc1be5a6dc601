"""What keeps a network from exact play on a small board? A network of self-play, and equal ones
trained on the solver's answers, each alone and with searches, in positions new to them.

Each position is drawn from a random game of its own and solved by alpha-beta search. A supervised
network has the shape, the rules and the learner of the player's; it learns the value of the game
and a policy that is even over the plays that keep it. It is written into a folder of its own, as an
exported network.

Intervals are Wilson's over positions. A value is wrong if the nearest of win, draw and loss is not
the result of best play. A search loses a position if the network alone keeps its value and the
search does not.

N positions, A slots.
"""

import dataclasses
import functools
import zlib
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.analysis.accuracy import solve_each
from train.checkpoints.exported import is_model, write_model
from train.checkpoints.weights import TrainedNetwork
from train.config import written_values
from train.data.best_slots import keep_best
from train.data.outcomes import Outcome
from train.data.replay import Sample
from train.experiments import lab
from train.experiments.tables import Table
from train.learning.learner import LearnerState, make_learner
from train.network import network_for, observer_for
from train.players.networks import load_network
from train.players.searching import network_player
from train.runtime.host import in_batches
from train.solver.alphabeta import AlphaBeta
from train.solver.boards import BY_SEARCH, DRAW, LOSS, WIN, check_solvable
from train.solver.positions import sample_positions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

_BATCH, _NODE_LIMIT = 500, 20_000_000
_GROUPS = ("where one can err", "won", "drawn", "4 walls", "5 to 6", "7 to 8", "from 9")
_MORE = ("search loses", "misjudged", "draws misjudged")


class Solved(NamedTuple):
    """Positions [N] with the solver's answers, on the host."""

    states: State
    value: np.ndarray  # int[N], for the player to move
    best: np.ndarray  # bool[N, A], the plays that keep it
    can_err: np.ndarray  # bool[N], whether some play does not
    walls: np.ndarray  # int[N]
    key: np.ndarray  # int[N], equal for the same board turned


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    players: tuple[str, ...] = ("runs/tiny_4x4",)
    """Networks of self-play, of equal rules; the supervised ones have the config of the first."""
    learned: tuple[int, ...] = (25_000, 100_000)
    """Positions that each supervised network learns."""
    steps: int = 6_000
    """Steps of learning."""
    held_out: int = 5_000
    """Positions that all are asked about."""
    min_walls: int = 4
    """Fewest walls of a position."""
    simulations: tuple[int, ...] = (16, 64, 256, 1024)
    """Numbers of simulations of the searches."""
    kinds: tuple[Literal["gumbel", "puct"], ...] = ("gumbel", "puct")
    """Kinds of the searches."""


def main(work: lab.Lab) -> dict[str, Any]:
    """Solve positions, teach networks, and ask all of them."""
    scale = work.scale
    seed = work.scale.seed
    for name in scale.players:
        lab.check_network(name)
    networks = {name: load_network(name) for name in scale.players}
    first = networks[scale.players[0]]
    rules = first.config.rules
    check_solvable(rules, BY_SEARCH)
    held_out = _solve(work, rules, scale.held_out, seed=seed)
    searches = [("", 0), *((kind, n) for n in scale.simulations for kind in scale.kinds)]
    asked = [(name, network, held_out, searches) for name, network in networks.items()]
    for count in scale.learned:
        solved = _solve(work, rules, max(scale.learned), seed=seed + 1)
        fresh = np.flatnonzero(~np.isin(solved.key, held_out.key)[:count])
        samples, name = jax.tree.map(lambda x, fresh=fresh: x[fresh], solved), f"{count:,}"
        network = _teach(work, first, samples, count)
        asked.append((f"supervised {name}", network, held_out, searches))
        some = jax.tree.map(lambda x: x[: scale.held_out], samples)
        name = f"supervised {name}, in its training positions"
        asked.append((name, network, some, searches[:1]))
    rows = []
    for name, network, solved, searches in asked:
        alone = _ask(work, network, solved, *searches[0])[0]
        for kind, simulations in searches:
            found = _ask(work, network, solved, kind, simulations)
            row = {"network": name, "search": f"{kind} {simulations}" if kind else "none"}
            rows.append(row | counts_of(solved, *found, alone))
    columns = [[head, head] for head in ("network", "search", "% kept", *_GROUPS, *_MORE)]
    return work.finish({"table": Table("Values kept in positions held out", columns, rows)})


def _solve(work: lab.Lab, rules: Rules, count: int, *, seed: int) -> Solved:
    """Positions of random games with their answers."""
    walls = work.scale.min_walls
    states = sample_positions(rules, count, min_walls=walls, seed=seed)
    settings = {"rules": rules.to_dict(), "count": count, "min_walls": walls, "seed": seed}

    def solve() -> list[list[int]]:
        rows: list[list[int]] = []
        for each in solve_each(AlphaBeta(rules, node_limit=_NODE_LIMIT), states):
            slots = sum(1 << slot for slot in each.best)
            rows.append([each.value, slots, int(each.can_err), each.walls, each.key])
        return rows

    answers = np.array(work.keep("answers", settings, solve), np.int64)
    value, slots, can_err, built, key = answers.T
    best = (slots[:, None] >> np.arange(states.num_slots) & 1).astype(np.bool_)
    return Solved(states, value, best, can_err.astype(np.bool_), built, key)


def _teach(work: lab.Lab, player: TrainedNetwork, solved: Solved, count: int) -> TrainedNetwork:
    """The network of a player's config trained on the answers of the first `count` positions,
    from its folder where it is finished."""
    folder = work.scale.out / "supervised" / f"network-{count}-{work.scale.steps}"
    if is_model(folder):
        return load_network(str(folder))
    config = player.config
    steps = work.scale.steps
    network = network_for(config.network, 2, size=config.rules.size)
    weights = dataclasses.replace(config.learner.weights, ownership=0.0, margin=0.0)
    options = dataclasses.replace(config.learner, weights=weights, value_mix=None, freeze=())
    observe = observer_for(config.network)
    learner = make_learner(network, options, total_steps=steps, observe=observe)
    samples = jax.tree.map(jnp.asarray, _samples(solved))

    @jax.jit
    def learn(state: LearnerState, samples: Sample, key: jax.Array) -> LearnerState:
        draw_key, turn_key = jax.random.split(key)
        count = len(samples.policy_weight)
        place = jax.random.randint(draw_key, (options.batch,), 0, count, jnp.int32)
        return learner.update(state, jax.tree.map(lambda x: x[place], samples), turn_key)[0]

    first_key, key = jax.random.split(jax.random.key(work.scale.seed))
    state = learner.init(network.init(first_key))
    for step in range(steps):
        state = learn(state, samples, jax.random.fold_in(key, step))
    about = {"steps": steps, "positions": len(samples.policy_weight), "supervised": "by the solver"}
    write_model(folder, state.weights, config, about)
    return load_network(str(folder))


def _samples(solved: Solved) -> Sample:
    """The positions as samples [N]; their games' territories are not known."""
    position = solved.states.position
    red = jnp.asarray(np.where(position.player == 0, solved.value, -solved.value), jnp.float32)
    best = jnp.asarray(solved.best / solved.best.sum(axis=1, keepdims=True), jnp.float32)
    return Sample(
        variant=solved.states.variant,
        position=position,
        policy=keep_best(best, kept=best.shape[1]),
        policy_weight=jnp.ones_like(red),
        root_value=None,
        outcome=Outcome(jnp.stack([red, -red], axis=1), jnp.zeros_like(position.walls[:, :, 0])),
        reply=None,
    )


def _ask(
    work: lab.Lab, network: TrainedNetwork, solved: Solved, kind: str, simulations: int
) -> tuple[np.ndarray, np.ndarray]:
    """int[N] slots that a network plays and float[N] values that it expects, by a kind of search or
    alone."""
    config, count = network.config, len(solved.value)
    search = dataclasses.replace(config.search, kind=kind or config.search.kind)
    settings: dict[str, Any] = {"weights": network.digest, "simulations": simulations}
    settings |= {"search": written_values(search), "seed": work.scale.seed}
    settings |= {"positions": zlib.crc32(solved.key.tobytes())}

    def ask() -> dict[str, list[float]]:
        make = functools.partial(network_player, network.name, network.variables, config)
        player = make(config.rules, search=search, simulations=simulations)
        assert player.report is not None
        choose = jax.jit(player.report)
        key = jax.random.key(work.scale.seed)

        def answer(states: State) -> tuple[jax.Array, jax.Array]:
            found = choose(player.variables, states, key)
            return found.slot, found.value

        slots, values = in_batches(answer, solved.states, min(_BATCH, count))
        return {"slots": slots.tolist(), "values": values.round(4).tolist()}

    found = work.keep("choices", settings, ask)
    return np.array(found["slots"]), np.array(found["values"])


def counts_of(
    solved: Solved, slots: np.ndarray, values: np.ndarray, alone: np.ndarray
) -> dict[str, Any]:
    """The numbers of positions in which slots keep the value, those of a network alone among them,
    and in which values misjudge it."""
    walls, place, is_drawn = solved.walls, np.arange(len(slots)), solved.value == DRAW
    groups = [np.ones(len(slots), np.bool_), solved.can_err, solved.value == WIN, is_drawn]
    groups += [walls <= 4, (walls > 4) & (walls <= 6), (walls > 6) & (walls <= 8), walls > 8]
    kept = solved.best[place, slots]
    wrong = np.clip(np.round(1.5 * values), LOSS, WIN) != solved.value
    found = [(kept[group].sum(), group.sum()) for group in groups]
    found += [((solved.best[place, alone] & ~kept).sum(), len(slots)), (wrong.sum(), len(slots))]
    found += [(wrong[is_drawn].sum(), is_drawn.sum())]
    names = ("% kept", *_GROUPS, *_MORE)
    return {
        name: {"kept": int(count), "of": int(of), "digits": 2} if of else ""
        for name, (count, of) in zip(names, found, strict=True)
    }


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
