"""A whole game, or one position, as one HTML page that needs nothing else.

The page of a game holds its animation and sets its clock: right and left arrow step a ply, Home and
End go to the start and the end, the space bar plays and stops, a click on a move goes to it. The
address ends in `#` and the ply, and a link with a ply opens it. Nothing tells the result before the
last ply, but for a curve of win chances, which is there only where they are given. Colours follow
the system's setting, light or dark, unless a theme is given.
"""

import json
from collections.abc import Iterable, Sequence
from html import escape
from string import Template
from typing import NamedTuple

from wallgo_jax.drawing import animation, board, curve
from wallgo_jax.drawing.theme import AUTO, of_variables, style
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import COLOURS, LETTERS, format_action
from wallgo_jax.view import captions
from wallgo_jax.view.game_replay import Game
from wallgo_jax.view.snapshot import Snapshot, take_snapshot


class Extras(NamedTuple):
    """What a page of a game holds beside the game.

    Attributes:
      over: SVG elements above the board, in the colours of `theme.of_variables()`.
      notes: HTML behind each move of the list, T of them.
      panel: HTML of a third column.
      style: CSS.
      script: JavaScript that may give `shown(ply)` a body; it is called at each step.
    """

    over: Sequence[str] = ()
    notes: Sequence[str] = ()
    panel: str = ""
    style: str = ""
    script: str = ""


_NO_EXTRAS = Extras()


def draw(
    game: Game,
    *,
    theme: str = AUTO,
    seconds: float = 0.9,
    players: Sequence[str] | None = None,
    chances: Sequence[Sequence[float | None]] | None = None,
    extras: Extras = _NO_EXTRAS,
) -> str:
    """Draw the page of a game.

    Args:
      theme: `light`, `dark`, or `auto` for the system's setting.
      seconds: how long a ply takes while the game plays.
      players: names of the players in the order of play.
      chances: [T + 1][P] win chances in each position, None where they are not known.
      extras: more to show.

    Raises:
      ValueError: for an unknown theme.
    """
    snapshots = [take_snapshot(state) for state in game.states]
    clock = animation.Clock(len(snapshots), seconds, hold=0.0)
    svg = animation.draw_snapshots(
        game, snapshots, of_variables(), clock, loop=False, caption=False, over=extras.over
    )
    moves = "".join(_move_buttons(game, extras.notes))
    names = players or COLOURS[: game.rules.players]
    return _PAGE.substitute(
        title=escape(f"WallGo: {' – '.join(names)}"),
        colours=style(theme),
        style="" if chances is None else f"{curve.STYLE}{extras.style}",
        kind="" if chances is None else "has-chances",
        seats=" ".join(_seat(player, name) for player, name in enumerate(names)),
        rules=escape(captions.rules_text(game.rules)),
        svg=svg,
        tally=_tally(snapshots[0]),
        caption=escape(captions.step_text(snapshots[0])),
        controls=_CONTROLS + ("" if chances is None else curve.panel(chances, of_variables())),
        moves=f'<div id="list"><nav id="moves" aria-label="moves">{moves}</nav></div>',
        panel=extras.panel and f'<div id="panel">{extras.panel}</div>',
        script=_SCRIPT.substitute(
            frames=len(snapshots),
            seconds=seconds,
            settled=animation.SETTLED,
            steps=script_json([_step(snapshot) for snapshot in snapshots]),
            chances=script_json(None if chances is None else [_percents(row) for row in chances]),
            more=extras.script,
        ),
    )


def draw_position(
    snapshot: Snapshot,
    rules: Rules,
    *,
    theme: str = AUTO,
    under: Iterable[str] = (),
    over: Iterable[str] = (),
) -> str:
    """Draw the page of one position.

    Args:
      theme: `light`, `dark`, or `auto` for the system's setting.
      under: more elements as in `board.draw`, in the colours of `theme.of_variables()`.
      over: as `under`, above the stones.

    Raises:
      ValueError: for an unknown theme.
    """
    caption = captions.step_text(snapshot)
    return _PAGE.substitute(
        title=escape(f"WallGo: {caption}"),
        colours=style(theme),
        style="",
        kind="",
        seats=" ".join(_seat(player, COLOURS[player]) for player in range(snapshot.players)),
        rules=escape(captions.rules_text(rules)),
        svg=board.draw(snapshot, of_variables(), under=under, over=over, caption=False),
        tally=_tally(snapshot),
        caption=escape(caption),
        controls="",
        moves="",
        panel="",
        script="",
    )


def _seat(player: int, name: str) -> str:
    return f"<span>{_disc(player)} {escape(name)}</span>"


def _disc(player: int) -> str:
    return f'<b class="disc p{player}">{LETTERS[player]}</b>'


def _tally(snapshot: Snapshot) -> str:
    drawn = []
    for player, cells in enumerate(snapshot.territory):
        text = f'<b class="cells">{cells}</b> <i>cells</i>'
        if snapshot.walls_left is not None:
            text += f' <i>· <b class="left">{snapshot.walls_left[player]}</b> walls left</i>'
        drawn.append(f"<span>{_disc(player)} {text}</span>")
    return "".join(drawn)


def _step(snapshot: Snapshot) -> dict[str, object]:
    left = snapshot.walls_left or ()
    return {"text": captions.step_text(snapshot), "cells": snapshot.territory, "left": left}


def script_json(value: object) -> str:
    """Write JSON that a script element can hold, whatever its strings are."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _percents(row: Sequence[float | None]) -> list[float | None]:
    return [None if chance is None else round(100 * chance, 1) for chance in row]


def _move_buttons(game: Game, notes: Sequence[str]) -> list[str]:
    buttons = ['<button data-ply="0"><i>0.</i>start</button>']
    for ply, (action, mover) in enumerate(zip(game.actions, game.movers, strict=True), start=1):
        text = escape(format_action(action, grid=game.grid))
        note = notes[ply - 1] if notes else ""
        buttons.append(
            f'<button data-ply="{ply}"><i>{ply}.</i>{_disc(mover)} {text}{note}</button>'
        )
    return buttons


_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
  $colours
  * { box-sizing: border-box; }
  body { margin: 0; padding: .75rem; background: var(--page); color: var(--ink);
         font: 16px/1.35 Helvetica, Arial, sans-serif; }
  header { text-align: center; margin-bottom: .5rem; }
  header h1 { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; justify-content: center; margin: 0;
              font: inherit; }
  header p { margin: 0; color: var(--quiet); font-size: .85rem; }
  main { display: grid; grid-template-columns: auto auto; gap: 1.5rem; justify-content: center; }
  #play-area { width: min(100vw - 18rem, 100vh - 13rem, 44rem); min-width: 16rem; }
  #board svg { display: block; width: 100%; height: auto; }
  #tally { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; margin: .4rem 0 0; }
  #tally i { font-style: normal; color: var(--quiet); font-size: .85rem; }
  #caption { margin: .2rem 0 0; min-height: 1.4em; }
  #controls { display: flex; gap: .35rem; align-items: center; margin-top: .4rem; }
  #controls button { flex: none; width: 2.5rem; height: 2.5rem; padding: 0; }
  #controls svg { display: block; margin: auto; fill: currentColor; }
  #controls input { flex: 1; min-width: 3rem; accent-color: var(--ink); }
  button { font: inherit; color: inherit; background: var(--tile); border: 1px solid var(--frame);
           border-radius: 6px; padding: .25rem .7rem; cursor: pointer; }
  .disc { display: inline-block; vertical-align: .1em; width: 1.3em; height: 1.3em;
          font-size: .8em; line-height: 1.3em; border-radius: 50%; text-align: center; }
  .p0 { background: var(--players-0); color: var(--letters-0); }
  .p1 { background: var(--players-1); color: var(--letters-1); }
  .p2 { background: var(--players-2); color: var(--letters-2); }
  .p3 { background: var(--players-3); color: var(--letters-3); }
  #list { position: relative; width: 15rem; }
  #moves { position: absolute; inset: 0; overflow-y: auto; display: flex; flex-direction: column;
           gap: 2px; }
  #moves button { flex: none; border-color: transparent; background: none; text-align: left;
                  padding: .1rem .4rem; }
  #moves button[aria-current] { background: var(--tile); border-color: var(--frame); }
  #moves i { display: inline-block; width: 2.2rem; color: var(--quiet); font-style: normal; }
  @media (max-width: 44rem) {
    body { display: flex; flex-direction: column; height: 100vh; height: 100dvh; padding: .5rem; }
    header { margin-bottom: 0; }
    header p { font-size: .78rem; }
    main { flex: 1; display: flex; flex-direction: column; gap: .4rem; min-height: 0;
           justify-content: flex-start; }
    #play-area { width: 100%; }
    #board svg { width: min(100%, 100vh - 19.5rem); margin: auto; }
    #tally { font-size: .8rem; gap: 0 .8rem; }
    #list { flex: 1; width: 100%; min-height: 5rem; }
  }
$style</style>
</head>
<body class="$kind">
<header><h1>$seats</h1><p>$rules</p></header>
<main>
  <div id="play-area">
    <div id="board">$svg</div>
    <p id="tally">$tally</p>
    <p id="caption" aria-live="polite">$caption</p>
    $controls
  </div>
  $moves
  $panel
</main>
$script
</body>
</html>
""")

_CONTROLS = """<div id="controls">
      <button id="first" title="to the start (Home)" aria-label="to the start">
        <svg width="16" height="16"><path d="M2 2h2v12H2zM14 2v12L5 8z"/></svg></button>
      <button id="back" title="back (left arrow)" aria-label="back">
        <svg width="16" height="16"><path d="M12 2v12L3 8z"/></svg></button>
      <button id="play" title="play or stop (space bar)" aria-label="play or stop">
        <svg width="16" height="16"><path/></svg></button>
      <button id="next" title="on (right arrow)" aria-label="on">
        <svg width="16" height="16"><path d="M4 2v12l9-6z"/></svg></button>
      <button id="last" title="to the end (End)" aria-label="to the end">
        <svg width="16" height="16"><path d="M12 2h2v12h-2zM2 2v12l9-6z"/></svg></button>
      <input id="ply" type="range" min="0" value="0" aria-label="ply">
    </div>"""

_SCRIPT = Template("""<script>
"use strict";
const FRAMES = $frames, SECONDS = $seconds, SETTLED = $settled;
const STEPS = $steps;
const CHANCES = $chances;
const PLAY = "M3 1v14l12-7z", STOP = "M3 2h4v12H3zM9 2h4v12H9z";
const svg = document.querySelector("#board svg");
const slider = document.querySelector("#ply");
const moves = document.querySelector("#moves");
const buttons = [...moves.querySelectorAll("button")];
const still = matchMedia("(prefers-reduced-motion: reduce)");
const bar = document.querySelectorAll("#bar span");
const charts = document.querySelectorAll(".chart svg");
let ply = 0, time = 0, goal = 0, playing = false, before = null;
let shown = () => { };
$more

function settled(frame) { return (frame + SETTLED) * SECONDS; }

function fill(selector, values) {
  document.querySelectorAll(selector).forEach((span, i) => { span.textContent = values[i]; });
}

function showChances() {
  const row = CHANCES[ply], known = row.every((chance) => chance !== null);
  bar.forEach((part, i) => {
    part.style.flexGrow = known ? row[i] : 1;
    part.querySelector("i").textContent = row[i] === null ? "?" : Math.round(row[i]) + " %";
  });
}

function show() {
  const step = STEPS[ply];
  document.querySelector("#caption").textContent = step.text;
  fill("#tally .cells", step.cells);
  fill("#tally .left", step.left);
  slider.value = ply;
  document.querySelector("#play path").setAttribute("d", playing ? STOP : PLAY);
  for (const button of buttons) {
    const here = Number(button.dataset.ply) === ply;
    if (here === button.hasAttribute("aria-current")) continue;
    if (here) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
    if (here) moves.scrollTop = button.offsetTop - moves.clientHeight / 2;
  }
  if (CHANCES) showChances();
  for (const chart of charts) {
    const at = ply / Math.max(FRAMES - 1, 1) * chart.viewBox.baseVal.width;
    const cursor = chart.querySelector(".cursor");
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
  }
  shown(ply);
  // Browsers refuse too many changes of the address within a short time.
  try { history.replaceState(null, "", "#" + ply); } catch { }
}

function go(to, glide) {
  ply = Math.max(0, Math.min(FRAMES - 1, to));
  goal = settled(ply);
  time = glide && ply > 0 && !still.matches ? ply * SECONDS : goal;
  svg.setCurrentTime(time);
  show();
}

function stop() { playing = false; }

function tick(now) {
  const passed = before === null ? 0 : (now - before) / 1000;
  before = now;
  if (time < goal) {
    time = Math.min(goal, time + passed);
    svg.setCurrentTime(time);
  } else if (playing && still.matches && passed && (time += passed) < goal + SECONDS) {
    // Without motion a step still lasts its time.
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
  if (!(event.key in keys) || event.altKey || event.ctrlKey || event.metaKey) return;
  const pressed = event.target.tagName === "BUTTON" || event.target.type === "checkbox";
  if (event.key === " " && pressed) return;
  event.preventDefault();
  keys[event.key]();
});
for (const [id, key] of [["first", "Home"], ["back", "ArrowLeft"], ["play", " "],
                         ["next", "ArrowRight"], ["last", "End"]])
  document.getElementById(id).addEventListener("click", keys[key]);
for (const button of buttons)
  button.addEventListener("click", () => { stop(); go(Number(button.dataset.ply), false); });
for (const chart of charts)
  chart.addEventListener("click", (event) => {
    const box = chart.getBoundingClientRect();
    stop();
    go(Math.round((event.clientX - box.left) / box.width * (FRAMES - 1)), false);
  });
slider.max = FRAMES - 1;
slider.addEventListener("input", () => { stop(); go(Number(slider.value), false); });

function follow() {
  const linked = Number(location.hash.slice(1));
  stop();
  go(Number.isInteger(linked) ? linked : 0, false);
}
addEventListener("hashchange", follow);
svg.pauseAnimations();
follow();
requestAnimationFrame(tick);
</script>""")
