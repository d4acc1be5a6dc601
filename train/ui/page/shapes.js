// What lies on the board, as SVG: stones, walls, patterns of territory, arrows. Colour alone never
// tells players apart: stones have letters, walls a line of their own, territory a pattern.

import { GAP, HEAD, PITCH, STONE, TILE, LETTERS, HORIZONTAL, centre, corner, wallBox } from "./geometry.js";

const SPACE = "http://www.w3.org/2000/svg";
const DASHES = [null, "none", "7 5", "0.1 5"];

export function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function tile(cell, size, fill, more = {}) {
  const [x, y] = corner(cell, size);
  return element("rect", { x, y, width: TILE, height: TILE, rx: 5, fill, ...more });
}

// The border of the board.
export function frame(size) {
  const from = HEAD - GAP + 2, side = size * PITCH + GAP - 4;
  return element("rect", {
    x: from, y: from, width: side, height: side, rx: 7, fill: "none", stroke: "var(--frame)", "stroke-width": 3,
  });
}

export function stone(player, cell, size, more = {}) {
  const [x, y] = centre(cell, size);
  const disc = element("circle", {
    r: STONE, fill: `var(--players-${player})`, stroke: `var(--edges-${player})`, "stroke-width": 2,
  });
  const letter = element("text", {
    y: 6.2, "font-size": 17, "font-weight": "bold", "text-anchor": "middle",
    fill: `var(--letters-${player})`,
  }, LETTERS[player]);
  return element("g", { transform: `translate(${x} ${y})`, ...more }, disc, letter);
}

export function wall(place, player, size, more = {}) {
  const box = wallBox(place, size);
  const bar = element("rect", {
    ...box, rx: 3, "stroke-width": 1, fill: `var(--players-${player})`,
    stroke: `var(--edges-${player})`,
  });
  const drawn = element("g", more, bar);
  if (DASHES[player] === null) return drawn;
  const way = place[0] === HORIZONTAL
    ? `M${box.x + 5} ${box.y + box.height / 2}h${box.width - 10}`
    : `M${box.x + box.width / 2} ${box.y + 5}v${box.height - 10}`;
  drawn.append(element("path", {
    d: way, fill: "none", stroke: `var(--letters-${player})`, "stroke-width": 1.6,
    "stroke-linecap": "round", "stroke-dasharray": DASHES[player],
  }));
  return drawn;
}

function diagonals() {
  return [15, 29, 44, 59, 73].map((total) => {
    const left = Math.max(4, total - (TILE - 4)), length = total - 2 * left;
    return [left, total - left, `l${length} -${length}`];
  });
}

const FOUR = [7, 17, 27, 37], THREE = [9, 22, 35];
const PATTERNS = [
  diagonals(),
  FOUR.flatMap((y) => FOUR.map((x) => [x, y, "h.01"])),
  FOUR.map((y) => [5, y, "h34"]),
  THREE.flatMap((y) => THREE.map((x) => [x, y, "m-3.5 0h7m-3.5 -3.5v7"])),
];

// A cell in the tint and the pattern of an owner, the stronger the surer.
export function territory(cell, owner, size, strength = 1) {
  const [x, y] = corner(cell, size);
  const steps = PATTERNS[owner].map(([a, b, way]) => `M${x + a} ${y + b}${way}`).join("");
  return element("g", { opacity: strength },
    tile(cell, size, `var(--tints-${owner})`),
    element("path", {
      d: steps, fill: "none", stroke: `var(--edges-${owner})`, opacity: 0.8,
      "stroke-width": owner === 1 ? 3.2 : 1.5, "stroke-linecap": "round",
    }));
}

export function ring(cell, size, radius, more = {}) {
  const [x, y] = centre(cell, size);
  return element("circle", {
    cx: x, cy: y, r: radius, fill: "none", stroke: "var(--accent)", "stroke-width": 2, ...more,
  });
}

export function dot(cell, size, player) {
  const [x, y] = centre(cell, size);
  return element("circle", {
    cx: x, cy: y, r: 7, fill: `var(--players-${player})`, stroke: `var(--edges-${player})`,
    "stroke-width": 1.5,
  });
}

export function outline(place, size, more = {}) {
  return element("rect", {
    ...wallBox(place, size), rx: 3, fill: "none", stroke: "var(--accent)", "stroke-width": 2, ...more,
  });
}

// Text with a halo, readable on any colour.
export function label(x, y, text, more = {}) {
  return element("text", {
    x, y: y + 4, "font-size": 12, "font-weight": "bold", "text-anchor": "middle",
    fill: "var(--ink)", stroke: "var(--page)", "stroke-width": 3.5, "paint-order": "stroke", ...more,
  }, text);
}

// An arrow along the cells that a stone passes; a ring for a stone that stays.
export function arrow(path, size, bold) {
  const places = path.map((cell) => centre(cell, size)), [origin] = path, target = path.at(-1);
  const width = 2 + 4 * bold, opacity = 0.55 + 0.4 * bold;
  if (origin === target) return ring(origin, size, STONE + 5, { "stroke-width": width, opacity });
  const [x1, y1] = places.at(-1), [x0, y0] = places.at(-2);
  const length = Math.hypot(x1 - x0, y1 - y0), dx = (x1 - x0) / length, dy = (y1 - y0) / length;
  const head = 7 + 1.6 * width, half = 0.55 * head;
  const neck = [x1 - head * dx, y1 - head * dy];
  const points = [[x1, y1], [neck[0] - half * dy, neck[1] + half * dx],
                  [neck[0] + half * dy, neck[1] - half * dx]];
  return element("g", { opacity },
    element("polyline", {
      points: [leave(places), ...places.slice(1, -1), neck].map((p) => p.join(",")).join(" "), fill: "none",
      stroke: "var(--accent)", "stroke-width": width, "stroke-linejoin": "round",
    }),
    element("polygon", { points: points.map((p) => p.join(",")).join(" "), fill: "var(--accent)" }));
}

// Where a line from the first place to the second leaves a stone.
function leave([[x0, y0], [x1, y1]]) {
  const share = (STONE + 2) / Math.hypot(x1 - x0, y1 - y0);
  return [x0 + share * (x1 - x0), y0 + share * (y1 - y0)];
}

// The way of a stone that has been moved, as a thin dashed line.
export function trail(path, size, more = {}) {
  return element("polyline", {
    points: path.map((cell) => centre(cell, size).join(",")).join(" "), fill: "none",
    stroke: "var(--accent)", "stroke-width": 2, "stroke-dasharray": "4 4", ...more,
  });
}
