// The moves in notation: the main line, and variations set in below the move that they replace.

import { LETTERS } from "./geometry.js";
import { count, disc, make, percent } from "./html.js";

const MARKS = { "?!": "inaccuracy", "?": "mistake", "??": "blunder" };

// on has go(number), remove(number) and showsChances.
export function drawMoves(list, view, on) {
  list.replaceChildren(button(view, view.root, 0, on), ...line(view, view.root, 0, on));
  const here = list.querySelector("[aria-current]");
  if (here) list.scrollTop = here.offsetTop - list.clientHeight / 2;
}

// depth: plies from the start to the node.
function line(view, node, depth, on) {
  const drawn = [];
  for (let at = node; at.children.length; [at] = at.children) {
    const [next, ...others] = at.children;
    depth += 1;
    drawn.push(button(view, next, depth, on));
    for (const other of others) drawn.push(variation(view, other, depth, on));
  }
  return drawn;
}

function variation(view, node, depth, on) {
  const remove = make("button", {
    class: "remove", "aria-label": `remove the variation ${node.text}`, title: "remove this variation",
    onclick: () => on.remove(node.number),
  }, "×");
  return make("div", { class: "variation" }, button(view, node, depth, on), remove, ...line(view, node, depth, on));
}

function button(view, node, depth, on) {
  const chance = !node.chances || view.seats.length > 2 ? null
    : make("small", { title: `Red's chance to win, by ${count(node.simulations, "simulation")}` }, `${LETTERS[0]} ${percent(node.chances[0])}`);
  return make("button", {
    "aria-current": node.number === view.current ? "step" : null,
    class: view.mode === "play" && node.number === view.tip ? "tip" : "",
    onclick: () => on.go(node.number),
  }, make("i", {}, `${depth}.`), depth ? disc(node.mover) : null, " ", make("span", {}, depth ? node.text : "start"),
  node.mark ? make("b", { class: "mark", title: MARKS[node.mark] }, node.mark) : null, " ",
  on.showsChances ? chance : null);
}

// The position that an arrow key goes to: back, on, start or end; null where there is none.
export function step(view, way) {
  let node = view.nodes.get(view.current);
  if (way === "back") return node.parent?.number ?? null;
  if (way === "on") return node.children[0]?.number ?? null;
  if (way === "start") return view.root.number;
  while (node.children.length) [node] = node.children;
  return node.number;
}
