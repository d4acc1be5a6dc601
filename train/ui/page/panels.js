// What stands around a board, on the page and in a notebook: players, clocks, hints, what goes on, how it ended.

import { COLOURS, LETTERS, cellName, columnName } from "./geometry.js";
import { count, disc, make, percent } from "./html.js";
import { MOVE, STONE } from "./view.js";
import { titleOfRules } from "./words.js";

const FOLLOWING = 3;

// chances: each player's, shown beside the names, or null.
export function drawPlayers(list, view, chances = null) {
  const { position, seats, clocks } = view;
  const people = seats.filter((seat) => seat === "person").length;
  list.replaceChildren(...seats.map((seat, player) => {
    const isNext = !view.isOver && position.player === player;
    const person = people === 1 ? "you" : "person";
    const who = view.names?.[player] ?? (seat === "person" ? person : `machine, ${seat}`);
    return make("li", { class: isNext ? "next" : "", "aria-label": `${COLOURS[player]}, ${who}` },
      disc(player), make("span", { class: "who", title: who }, `${COLOURS[player]} · ${who}`),
      chances ? make("b", { title: "chance to win" }, percent(chances[player])) : null,
      make("span", { class: "quiet", title: "territory" }, count(position.territory[player], "cell")),
      position.wallsLeft ? make("span", { class: "quiet" }, count(position.wallsLeft[player], "wall")) : null,
      clocks ? make("span", { class: "clock", "data-player": player }) : null);
  }));
  drawClocks(list, clocks);
}

// clocks: null, or the seconds left of each player.
export function drawClocks(list, clocks) {
  for (const shown of list.querySelectorAll(".clock")) {
    const left = clocks[Number(shown.dataset.player)];
    shown.textContent = timeText(left);
    shown.classList.toggle("short", left < 20);
  }
}

export function timeText(seconds) {
  const whole = Math.floor(seconds), minutes = Math.floor(whole / 60);
  const rest = String(whole % 60).padStart(2, "0");
  return seconds < 20 ? `${minutes}:${rest}.${Math.floor((seconds % 1) * 10)}` : `${minutes}:${rest}`;
}

// activity: null, or text, seconds so far, and the share that is done or null.
// The elements stay while it goes on, so that a bar is not said anew each time.
export function drawActivity(box, activity) {
  const seconds = activity?.seconds ?? 0;
  box.hidden = seconds < 1;
  if (box.hidden) return;
  if (!box.firstChild) box.replaceChildren(make("p"), make("progress", { max: "1" }));
  const [words, bar] = box.children;
  words.textContent = `${activity.text}, ${Math.floor(seconds)} s`;
  bar.hidden = activity.share === null;
  bar.setAttribute("aria-label", activity.text);
  if (activity.share > 0) bar.value = activity.share;
  else bar.removeAttribute("value");
}

export function drawEvaluation(bar, view, isShown) {
  bar.hidden = !isShown;
  if (!isShown) return;
  const { result, evaluation } = view, chances = result ?? evaluation?.chances;
  if (!chances) {
    bar.setAttribute("aria-label", "evaluation: not yet known");
    bar.replaceChildren(make("span", { class: "unknown" }, view.isOver ? "the game is over" : "evaluating …"));
    return;
  }
  const words = chances.map((chance, player) => `${COLOURS[player]} ${percent(chance)}`);
  bar.title = result ? "" : `by ${count(evaluation.simulations, "simulation")}`;
  bar.setAttribute("aria-label", `win chances: ${words.join(", ")} ${bar.title}`);
  // Four words do not fit on a phone.
  const names = chances.length > 2 ? LETTERS : COLOURS;
  bar.replaceChildren(...chances.map((chance, player) => {
    const part = make("span", { class: `part p${player}` },
      chance >= 0.18 ? make("span", {}, `${names[player]} ${percent(chance)}`) : null);
    part.style.flexGrow = result ? chance : Math.max(chance, 0.005);
    return part;
  }));
}

// The good moves that a view's hint has found by now, the best first; null before.
function foundBy({ hint, evaluation, hintSimulations }) {
  return hint && evaluation?.ideas.length && evaluation.simulations >= hintSimulations ? evaluation.ideas : null;
}

// The moves that a view's hint shows by now, or null.
export function hintsOf(view) { return view.hint === MOVE ? foundBy(view) : null; }

// The cells that a hint marks before it shows a move: that of the stone, or the free ones of the column to place it in.
export function hintedCells(view) {
  const ideas = view.hint === STONE ? foundBy(view) : null;
  if (!ideas) return [];
  const { position: { legal, size } } = view;
  const [{ origin, target }] = ideas;
  return origin === null ? legal.cells.filter((cell) => cell % size === target % size) : [origin];
}

// A hint in words, or "" for none.
export function hintText(view) {
  const [idea] = foundBy(view) ?? [];
  if (!idea) return view.hint && view.thinking ? "Looking for a hint …" : "";
  const { size } = view.position;
  if (view.hint === MOVE) return `Hint: ${idea.line[0]}`;
  return idea.origin === null ? `Hint: place it in column ${columnName(idea.target % size)}`
    : `Hint: move the stone on ${cellName(idea.origin, size)}`;
}

export function hintButton({ hint }) { return { [STONE]: "Show move", [MOVE]: "Hide hint" }[hint] ?? "Hint"; }

// on has play(move) and preview(idea or null).
export function drawIdeas(box, view, ideas, on) {
  box.hidden = !ideas;
  if (box.hidden) return;
  const alone = (idea) => () => on.preview(idea), colour = COLOURS[view.position.player];
  const about = `${count(view.evaluation.simulations, "simulation")}, the most visited first`;
  const heads = ["move", "chance to win", "visits"].map((name) => make("th", { scope: "col" }, name));
  box.replaceChildren(make("h2", {}, "Hint ", make("small", {}, about)), make("table", {},
    make("thead", {}, make("tr", {}, ...heads)), ...ideas.map((idea) => make("tbody", {
      onmouseenter: alone(idea), onmouseleave: alone(null), onfocusin: alone(idea), onfocusout: alone(null),
    },
    make("tr", {},
      make("th", { scope: "row" },
        make("button", { disabled: !view.mayPlay, onclick: () => on.play(idea.line[0]), title: "play this move" }, idea.line[0])),
      make("td", {}, make("b", {}, `${colour} ${percent(idea.winChance)}`)), make("td", {}, String(idea.visits))),
    idea.line.length > 1 ? make("tr", {}, make("td", { class: "line", colspan: heads.length }, "then ",
      ...idea.line.slice(1, 1 + FOLLOWING).map((move) => make("span", {}, `${move} `)))) : null))));
}

// How the game ended: who won, cells of each player and of nobody, their ratio, plies.
export function drawEnd(box, view) {
  const { end, rules } = view, ratio = "the winner's cells over those of the others, on average";
  box.replaceChildren(make("h2", {}, end.title),
    make("p", {}, ...end.cells.flatMap((cells, player) => [disc(player), ` ${count(cells, "cell")} `]),
      make("span", { class: "quiet" }, end.nobody ? ` nobody's: ${count(end.nobody, "cell")}` : "")),
    make("p", { class: "quiet" },
      end.ratio === null ? null : make("span", { title: ratio }, `Ratio of cells ${end.ratio.toFixed(2)} · `),
      `${count(end.plies, "ply")} · ${rules.title}`));
}

// offer: null, or games to go on with, isLost where the page's own game could not be set up, and isFirst where nothing
// was played before; on has open(name) and learn().
export function drawOffer(box, offer, on) {
  box.hidden = !offer || !(offer.isLost || offer.isFirst || offer.games.length);
  if (box.hidden) return;
  const lost = "The game of this address could not be set up again; this is a new one.";
  const words = [offer.isLost ? lost : "", offer.games.length ? "Go on with an unfinished game:" : ""];
  box.replaceChildren(make("span", {}, words.join(" ").trim()),
    ...offer.games.map(({ name, rules, plies, at }) => make("button", { onclick: () => on.open(name) },
      `${titleOfRules(rules)}, ${count(plies, "move")}, ${new Date(at).toLocaleString([], { dateStyle: "short", timeStyle: "short" })}`)),
    offer.isFirst ? make("button", { onclick: on.learn }, "New to WallGo? How to play") : null);
}
