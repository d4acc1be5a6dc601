// The moves in notation: the main line, and variations set in below the move that they replace.

import { LETTERS } from "./geometry.js";
import { count, disc, make, percent } from "./html.js";

const MARKS = { "?!": "inaccuracy", "?": "mistake", "??": "blunder" };

// Nodes as objects with children, by number.
export function readTree(view) {
  const nodes = new Map();
  for (const [number, parent, move, mover, chance, mark, simulations] of view.nodes) {
    nodes.set(number, { number, parent, move, mover, chance, mark, simulations, children: [], depth: 0 });
  }
  for (const node of nodes.values()) {
    if (node.parent === null) continue;
    const parent = nodes.get(node.parent);
    node.depth = parent.depth + 1;
  }
  for (const [number, children] of Object.entries(view.children)) {
    nodes.get(Number(number)).children = children.map((child) => nodes.get(child));
  }
  return nodes;
}

// on has go(number), remove(number) and showsChances.
export function drawMoves(list, view, nodes, on) {
  const root = nodes.get(view.nodes[0][0]);
  const start = button(view, root, "start", on);
  list.replaceChildren(start, ...line(view, root, on));
  const here = list.querySelector("[aria-current]");
  if (here) list.scrollTop = here.offsetTop - list.clientHeight / 2;
}

function line(view, node, on) {
  const drawn = [];
  while (node.children.length) {
    const [next, ...others] = node.children;
    drawn.push(button(view, next, null, on));
    for (const other of others) drawn.push(variation(view, other, on));
    node = next;
  }
  return drawn;
}

function variation(view, node, on) {
  const remove = make("button", {
    class: "remove", "aria-label": `remove the variation ${node.move}`, title: "remove this variation",
    onclick: () => on.remove(node.number),
  }, "×");
  return make("div", { class: "variation" }, button(view, node, null, on), remove, ...line(view, node, on));
}

function button(view, node, words, on) {
  const chance = node.chance === null || view.seats.length > 2 ? null
    : make("small", { title: `Red's chance to win, by ${count(node.simulations, "simulation")}` }, `${LETTERS[0]} ${percent(node.chance)}`);
  return make("button", {
    "aria-current": node.number === view.current ? "step" : null,
    class: view.mode === "play" && node.number === view.tip ? "tip" : "",
    onclick: () => on.go(node.number),
  }, make("i", {}, words ? "0." : `${node.depth}.`), words ? null : disc(node.mover), " ", make("span", {}, words ?? node.move),
  node.mark ? make("b", { class: "mark", title: MARKS[node.mark] }, node.mark) : null, " ",
  on.showsChances ? chance : null);
}

// The position that an arrow key goes to: back, on, start or end.
export function step(view, nodes, way) {
  let node = nodes.get(view.current);
  if (way === "back") return node.parent;
  if (way === "on") return node.children[0]?.number ?? null;
  if (way === "start") return view.nodes[0][0];
  while (node.children.length) node = node.children[0];
  return node.number;
}
