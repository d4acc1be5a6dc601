"""Random play in the core, in plies a second, beside pgx's othello in the same process.

    python tests/benchmarks/bench_core.py [--batch 1024 4096] [--plies 200] [--runs 7] [--no-pgx]

Every row plays uniformly random legal actions on all boards at once, with the end check and an
auto-reset, in one jitted scan. Rows take turns, run by run, and medians are reported, so that a
drift of the machine's speed meets all of them. What XLA could drop feeds a printed checksum.

    bits    the 208 legal slots as bits, the choice made on bits: the core's own way
    mask    the 208 legal slots as a bool mask, chosen from by `chance.choose`
    othello pgx's mask of 65 actions, chosen from by the same `chance.choose`, pgx's auto_reset

Only `mask` and `othello` share their choice function; `bits` against `othello` is the core as used.
Needs the `bench` extra for pgx.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax import PRESETS
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.state import State, initial_state

GRID = 7
Program = Callable[[Any, jax.Array], tuple[Any, Any]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--plies", type=int, default=200)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--no-pgx", action="store_true")
    options = parser.parse_args()
    print(f"jax {jax.__version__} on {jax.devices()[0].device_kind}, {jax.device_count()} device")
    best: dict[str, float] = {}
    for boards in options.batch:
        rows = {name: _core_row(boards, options.plies, name) for name in ("bits", "mask")}
        if not options.no_pgx:
            rows["othello"] = _othello_row(boards, options.plies)
        speeds = _take_turns(rows, plies=boards * options.plies, runs=options.runs)
        for name, speed in speeds.items():
            best[name] = max(best.get(name, 0.0), speed)
            print(f"batch {boards:6d}  {name:8s} {speed / 1e6:7.2f} M plies/s")
    for name in ("bits", "mask"):
        if "othello" in best:
            print(f"{name} / othello, better batch of each: {best[name] / best['othello']:.2f}")


def _take_turns(rows: dict[str, tuple[Program, Any]], *, plies: int, runs: int) -> dict[str, float]:
    """Median speed of each row over runs that alternate, after a warm-up that is not counted."""
    compiled, states, seconds = {}, {}, {name: [] for name in rows}
    for name, (program, state) in rows.items():
        began = time.perf_counter()
        lowered = jax.jit(program, donate_argnums=0).lower(state, jax.random.key(0))
        compiled[name] = lowered.compile()
        print(f"  {name}: compiled in {time.perf_counter() - began:.1f} s")
        states[name], _ = compiled[name](state, jax.random.key(0))
    checks = dict.fromkeys(rows, 0)
    for run in range(runs):
        for name, program in compiled.items():
            jax.block_until_ready(states[name])
            began = time.perf_counter()
            states[name], (played, games, check) = program(states[name], jax.random.key(run + 1))
            jax.block_until_ready((states[name], check))
            seconds[name].append(time.perf_counter() - began)
            if int(played) != plies:
                raise RuntimeError(f"{name}: {int(played)} plies were played, not {plies}")
            checks[name] = (checks[name] + int(check) + int(games)) % 2**32
    print("  checksums " + ", ".join(f"{name} {value:08x}" for name, value in checks.items()))
    return {name: plies / statistics.median(times) for name, times in seconds.items()}


def _core_row(boards: int, plies: int, way: str) -> tuple[Program, Any]:
    fresh = initial_state(PRESETS["wallzero-4stone"])

    def one(position: Any, bits: jax.Array):
        state = State(fresh.variant, position)
        if way == "bits":
            legal = actions.legal_words(state, grid=GRID)
            slot = chance.choose_bit(bits, legal)
            seen = legal.sum(dtype=jnp.uint32)
        else:
            legal = actions.legal_slots(state, grid=GRID)
            slot = chance.choose(bits, legal)
            seen = slot.astype(jnp.uint32)
        after, rewards = referee.play(state, slot, grid=GRID)
        over = after.position.terminated
        check = seen + (rewards[0] > 0).astype(jnp.uint32)
        return referee.restart_if_over(after).position, (over, check)

    def program(positions: Any, key: jax.Array):
        def ply(carry: Any, ply_key: jax.Array):
            bits = jax.random.bits(ply_key, (boards,), jnp.uint32)
            after, (over, check) = jax.vmap(one)(carry, bits)
            return after, (over.size, over.sum(), check.sum(dtype=jnp.uint32))

        after, sums = jax.lax.scan(ply, positions, jax.random.split(key, plies))
        return after, jax.tree.map(lambda x: x.sum(dtype=x.dtype), sums)

    positions = jax.tree.map(
        lambda x: jnp.array(np.broadcast_to(np.asarray(x), (boards, *x.shape))), fresh.position
    )
    return program, positions


def _othello_row(boards: int, plies: int) -> tuple[Program, Any]:
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make("othello")
    step = auto_reset(env.step, env.init)

    def one(state: Any, bits: jax.Array, key: jax.Array):
        action = chance.choose(bits, state.legal_action_mask)
        after = step(state, action, key)
        return after, (after.terminated, action.astype(jnp.uint32))

    def program(states: Any, key: jax.Array):
        def ply(carry: Any, ply_key: jax.Array):
            bits_key, reset_key = jax.random.split(ply_key)
            bits = jax.random.bits(bits_key, (boards,), jnp.uint32)
            after, (over, check) = jax.vmap(one)(carry, bits, jax.random.split(reset_key, boards))
            return after, (over.size, over.sum(), check.sum(dtype=jnp.uint32))

        after, sums = jax.lax.scan(ply, states, jax.random.split(key, plies))
        return after, jax.tree.map(lambda x: x.sum(dtype=x.dtype), sums)

    return program, jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(9), boards))


if __name__ == "__main__":
    main()
