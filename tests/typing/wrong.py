# pyright: strict
"""Wrong calls, each of which the type checker must report; `# error` marks their lines."""

import train
import wallgo_jax

state = wallgo_jax.make("wallzero-4stone").init()

train.match("random", "wjx", gamse=10)  # error
train.match("random", "wjx", games="ten")  # error
train.elo(["random", "wjx"], minuets=1.0)  # error
train.tournament(["random", "wjx"], heats="two")  # error
train.tournament(["random", "wjx"], form="knockout")  # error
train.accuracy("random", positions=2.5)  # error
train.review_game("games.jsonl", siblings="all")  # error
train.selfplay("random", gmaes=8)  # error
train.make_player("wjx").search(state, kind="alphabeta")  # error
train.make_player("wjx").search(state, kidn="puct")  # error
train.export("runs/tiny", web=1)  # error
train.find_puzzles(count="many")  # error
train.start("configs/tiny.toml", progres=True)  # error
