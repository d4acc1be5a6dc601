# pyright: strict
"""A user's script: an environment, a config, a run, a match, ratings, a search and a review.

The type checker reads it in strict mode; nothing runs it. JAX leaves some of its own types open.
"""
# pyright: reportUnknownMemberType=false

from pathlib import Path

import jax

import train
import wallgo_jax

env = wallgo_jax.make("wallzero-4stone")
state = env.init(jax.random.key(0))
state = env.step(state, 24)
print(state.current_player, state.legal_action_mask.shape)

config = train.make_config("configs/tiny.toml", {"learner.steps": 8}, seed=3, iterations=2)
print(config.network.width, config.rules.size)

with train.start(config, runs="runs") as run:
    for row in run:
        print(row["iteration"], row["loss"])
    newest = run.player(simulations=16)

result = train.match(newest, "wjx", games=100, opening_plies=4, records="out/games.jsonl")
low, high = result.interval
print(f"{result.win_rate:.1%} ({low:.1%} to {high:.1%})", result.table(), result.summary())

pool = train.elo([Path("runs/tiny"), "random", newest], budget=200, zero="random")
for rated in pool.rows:
    print(rated["player"], rated["elo"])

report = newest.search(state, simulations=32, kind="puct")
print(report.best, report.values, newest.act(state))

review = train.review_game("out/games.jsonl", "heuristic-search:wjx@64", game=1)
review.write("out/review.html", theme="dark")
print(train.describe(config, measure=False).parts[0].name)
