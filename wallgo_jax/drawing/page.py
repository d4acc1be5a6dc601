"""A whole game as one HTML page that needs nothing else, stepped with the arrow keys.

The page holds the animation of the game and sets its clock: right and left arrow step a ply, Home
and End go to the start and the end, the space bar plays and stops, a click on a move goes to it.
"""

from collections.abc import Sequence
from html import escape
from string import Template

from wallgo_jax.drawing import animation
from wallgo_jax.drawing.theme import Theme
from wallgo_jax.notation import COLOURS, format_action
from wallgo_jax.view import captions
from wallgo_jax.view.game_replay import Game
from wallgo_jax.view.snapshot import take_snapshot


def draw(
    game: Game, theme: Theme, *, seconds: float = 0.9, players: Sequence[str] | None = None
) -> str:
    """Draw the page.

    Args:
      seconds: how long a ply takes while the game plays.
      players: names of the players in the order of play.
    """
    snapshots = [take_snapshot(state) for state in game.states]
    clock = animation.Clock(len(snapshots), seconds, hold=0.0)
    svg = animation.draw_snapshots(game, snapshots, theme, clock, loop=False)
    names = players or COLOURS[: game.rules.players]
    seats = " – ".join(
        f'<b style="color:{theme.players[player]}">{escape(name)}</b>'
        for player, name in enumerate(names)
    )
    return _PAGE.substitute(
        title=escape(f"WallGo: {' – '.join(names)}"),
        seats=seats,
        result=escape(captions.status(snapshots[-1])),
        svg=svg,
        moves="".join(_move_buttons(game, theme)),
        frames=len(snapshots),
        seconds=seconds,
        settled=animation.SETTLED,
        scheme=theme.name,
        page=theme.page,
        ink=theme.ink,
        quiet=theme.quiet,
        tile=theme.tile,
        frame=theme.frame,
    )


def _move_buttons(game: Game, theme: Theme) -> list[str]:
    buttons = []
    for ply, (action, mover) in enumerate(zip(game.actions, game.movers, strict=True), start=1):
        text = escape(format_action(action, grid=game.grid))
        buttons.append(
            f'<button data-ply="{ply}"><i>{ply}.</i>'
            f'<span style="background:{theme.players[mover]}"></span>{text}</button>'
        )
    return buttons


_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
  :root { color-scheme: $scheme; }
  body { margin: 0; padding: 1rem; background: $page; color: $ink;
         font: 16px/1.4 Helvetica, Arial, sans-serif; }
  main { display: flex; flex-wrap: wrap; gap: 1rem 1.5rem; justify-content: center; }
  header { text-align: center; margin-bottom: .5rem; }
  header p { margin: 0; color: $quiet; }
  #board svg { display: block; width: min(92vw, 68vh, 40rem); height: auto; }
  #controls { display: flex; gap: .4rem; align-items: center; margin-top: .4rem; }
  #controls input { flex: 1; accent-color: $ink; }
  button { font: inherit; color: inherit; background: $tile; border: 1px solid $frame;
           border-radius: 6px; padding: .25rem .7rem; cursor: pointer; }
  #moves { position: relative; width: 15rem; max-height: 80vh; overflow-y: auto; display: flex;
           flex-direction: column; gap: 2px; }
  @media (max-width: 44rem) { #moves { max-height: 30vh; } }
  #moves button { border-color: transparent; background: none; text-align: left;
                  padding: .1rem .4rem; }
  #moves button[aria-current] { background: $tile; border-color: $frame; }
  #moves i { display: inline-block; width: 2.2rem; color: $quiet; font-style: normal; }
  #moves span { display: inline-block; width: .7rem; height: .7rem; border-radius: 50%;
                margin-right: .5rem; }
</style>
</head>
<body>
<header><div>$seats</div><p>$result</p></header>
<main>
  <div>
    <div id="board">$svg</div>
    <div id="controls">
      <button id="first" title="Home">|◀</button>
      <button id="back" title="left arrow">◀</button>
      <button id="play" title="space bar">play</button>
      <button id="next" title="right arrow">▶</button>
      <button id="last" title="End">▶|</button>
      <input id="ply" type="range" min="0" value="0" aria-label="ply">
    </div>
  </div>
  <nav id="moves" aria-label="moves">$moves</nav>
</main>
<script>
"use strict";
const FRAMES = $frames, SECONDS = $seconds, SETTLED = $settled;
const svg = document.querySelector("#board svg");
const slider = document.querySelector("#ply");
const moves = document.querySelector("#moves");
const buttons = [...moves.querySelectorAll("button")];
let ply = 0, time = 0, goal = 0, playing = false, before = null;

function settled(frame) { return (frame + SETTLED) * SECONDS; }

function show() {
  svg.setCurrentTime(time);
  slider.value = ply;
  document.querySelector("#play").textContent = playing ? "stop" : "play";
  for (const button of buttons) {
    const here = Number(button.dataset.ply) === ply;
    if (here === button.hasAttribute("aria-current")) continue;
    button.toggleAttribute("aria-current", here);
    if (here) moves.scrollTop = button.offsetTop - moves.clientHeight / 2;
  }
}

function go(to, glide) {
  ply = Math.max(0, Math.min(FRAMES - 1, to));
  goal = settled(ply);
  time = glide && ply > 0 ? ply * SECONDS : goal;
  show();
}

function stop() { playing = false; }

function tick(now) {
  const passed = before === null ? 0 : (now - before) / 1000;
  before = now;
  if (time < goal) {
    time = Math.min(goal, time + passed);
    show();
  } else if (playing && ply < FRAMES - 1) {
    go(ply + 1, true);
  } else if (playing) {
    stop();
    show();
  }
  requestAnimationFrame(tick);
}

const keys = {
  ArrowRight: () => { stop(); go(ply + 1, ply < FRAMES - 1); },
  ArrowLeft: () => { stop(); go(ply - 1, false); },
  Home: () => { stop(); go(0, false); },
  End: () => { stop(); go(FRAMES - 1, false); },
  " ": () => {
    playing = !playing;
    if (playing && ply === FRAMES - 1) go(0, false);
    show();
  },
};
document.addEventListener("keydown", (event) => {
  if (!(event.key in keys)) return;
  event.preventDefault();
  keys[event.key]();
});
for (const [id, key] of [["first", "Home"], ["back", "ArrowLeft"], ["play", " "],
                         ["next", "ArrowRight"], ["last", "End"]])
  document.getElementById(id).addEventListener("click", (event) => {
    keys[key]();
    event.currentTarget.blur();
  });
for (const button of buttons)
  button.addEventListener("click", () => { stop(); go(Number(button.dataset.ply), false); });
slider.max = FRAMES - 1;
slider.addEventListener("input", () => { stop(); go(Number(slider.value), false); });

svg.pauseAnimations();
const linked = Number(location.hash.slice(1));
go(Number.isInteger(linked) ? linked : 0, false);
requestAnimationFrame(tick);
</script>
</body>
</html>
""")
