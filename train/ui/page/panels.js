// The panels beside the board: players, clocks, evaluation bar, hints, status.

import { COLOURS, LETTERS } from "./geometry.js";
import { $, disc, make, percent } from "./html.js";

const FOLLOWING = 3;

export function drawPlayers(view) {
  const { position, seats, clocks } = view;
  const people = seats.filter((seat) => seat === "person").length;
  $("#players").replaceChildren(...seats.map((seat, player) => {
    const moves = !view.isOver && position.player === player;
    const person = people === 1 ? "you" : "person";
    const who = view.names?.[player] ?? (seat === "person" ? person : `machine, ${seat}`);
    return make("li", { class: moves ? "moves" : "", "aria-label": `${COLOURS[player]}, ${who}` },
      disc(player), make("span", { class: "who", title: who }, `${COLOURS[player]} · ${who}`),
      make("span", { class: "cells", title: "territory" }, count(position.territory[player], "cell")),
      position.wallsLeft ? make("span", { class: "left" }, count(position.wallsLeft[player], "wall")) : null,
      clocks ? make("span", { class: "clock", "data-player": player }) : null);
  }));
  drawClocks(view, 0);
}

function count(number, what) { return `${number} ${what}${number === 1 ? "" : "s"}`; }

// seconds: since the view came.
export function drawClocks(view, seconds) {
  if (!view.clocks) return;
  for (const shown of document.querySelectorAll("#players .clock")) {
    const player = Number(shown.dataset.player);
    const left = view.clocks.left[player] - (player === view.clocks.running ? seconds : 0);
    shown.textContent = timeText(Math.max(0, left));
    shown.classList.toggle("short", left < 20);
    shown.classList.toggle("runs", player === view.clocks.running);
  }
}

export function timeText(seconds) {
  const whole = Math.floor(seconds), minutes = Math.floor(whole / 60);
  const rest = String(whole % 60).padStart(2, "0");
  return seconds < 20 ? `${minutes}:${rest}.${Math.floor((seconds % 1) * 10)}` : `${minutes}:${rest}`;
}

export function drawEvaluation(view, isShown) {
  const bar = $("#evaluation"), { evaluation } = view;
  bar.hidden = !isShown;
  if (!isShown) return;
  const result = view.result;
  const chances = result ?? evaluation?.chances;
  if (!chances) {
    bar.setAttribute("aria-label", "evaluation: not yet known");
    bar.replaceChildren(make("span", { class: "unknown" }, view.isOver ? "the game is over" : "evaluating …"));
    return;
  }
  const words = chances.map((chance, player) => `${COLOURS[player]} ${percent(chance)}`);
  bar.setAttribute("aria-label", `win chances: ${words.join(", ")}`);
  // Four words do not fit on a phone.
  const names = chances.length > 2 ? LETTERS : COLOURS;
  bar.replaceChildren(...chances.map((chance, player) => {
    const part = make("span", { class: `part p${player}` },
      chance >= 0.12 ? make("span", {}, `${names[player]} ${percent(chance)}`) : null);
    part.style.flexGrow = result ? chance : Math.max(chance, 0.005);
    return part;
  }));
}

// on has play(move) and preview(idea or null).
export function drawIdeas(view, ideas, on) {
  const box = $("#ideas");
  const waits = view.hint && view.thinking && !ideas;
  box.hidden = !ideas && !waits;
  if (box.hidden) return;
  if (waits) {
    box.replaceChildren(make("p", {}, "Looking for a hint …"));
    return;
  }
  const alone = (idea) => () => on.preview(idea);
  box.replaceChildren(make("h2", {}, "Hint"), make("ol", {}, ...ideas.map((idea) => make("li", {
    onmouseenter: alone(idea), onmouseleave: alone(null), onfocusin: alone(idea), onfocusout: alone(null),
  },
    make("button", { disabled: !view.mayPlay, onclick: () => on.play(idea.line[0]), title: "play this move" }, idea.line[0]),
    make("span", { class: "chance" }, `wins ${percent(idea.winChance)}`),
    idea.line.length > 1 ? make("span", { class: "line" }, "then ",
      ...idea.line.slice(1, 1 + FOLLOWING).map((move) => make("span", {}, `${move} `))) : null))));
}

export function drawNote(view, wantsOwners) {
  const note = $("#note");
  const missing = wantsOwners && view.evaluation && !view.evaluation.owners && !view.isOver;
  const words = missing ? "No territory estimate: the machine for these rules has no head for it." : "";
  const preparing = "The machine is getting ready: its first move with new rules takes a while.";
  note.textContent = view.error || (view.preparing ? preparing : words);
  note.hidden = !note.textContent;
}

// offer: null, or games to go on with, and isLost where the page's own game could not be set up; on has open(name).
export function drawOffer(offer, on) {
  const box = $("#offer");
  box.hidden = !offer || !(offer.isLost || offer.games.length);
  if (box.hidden) return;
  const lost = "The game of this address could not be set up again; this is a new one.";
  const words = [offer.isLost ? lost : "", offer.games.length ? "Go on with an unfinished game:" : ""];
  box.replaceChildren(make("span", {}, words.join(" ").trim()),
    ...offer.games.map(({ name, rules, plies, at }) => make("button", { onclick: () => on.open(name) },
      `${rules}, ${count(plies, "move")}, ${new Date(at).toLocaleString([], { dateStyle: "short", timeStyle: "short" })}`)));
}
