// The rules in three pictures: where a stone goes, what it builds, who owns what.

import { centre, cellName, extent } from "./geometry.js";
import { make } from "./html.js";
import * as shapes from "./shapes.js";

const SIZE = 4, RED = 0, BLUE = 1;
const WALLS = { below: 0, right: 1 };  // of a cell
const CELLS = [...Array(SIZE * SIZE).keys()];
const at = (name) => CELLS.find((cell) => cellName(cell, SIZE) === name);
const wall = (side, name, player, more) => shapes.wall([WALLS[side], at(name)], player, SIZE, more);
const stone = (player, name) => shapes.stone(player, at(name), SIZE);

const PICTURES = [
  {
    title: "1. Move a stone",
    text: "Pick one of your stones. It goes up to two steps, up, down, left or right, around walls and other stones; or it stays.",
    alt: "A red stone on B2 may go to the dots; a wall bars the way to C2, a blue stone stands on B4.",
    draw: () => [
      wall("right", "B2", BLUE), shapes.trail(["B2", "B3", "C3"].map(at), SIZE), stone(RED, "B2"), stone(BLUE, "B4"),
      ...["A1", "A2", "A3", "B1", "B3", "C1", "C3"].map((name) => shapes.dot(at(name), SIZE, RED)),
      note("C2", "wall"), note("D3", "2 steps"),
    ],
  },
  {
    title: "2. Build a wall",
    text: "Then it builds a wall on one free side of its cell. Walls never go away, and nobody passes them.",
    alt: "The red stone has gone to C3 and builds a wall on its right side; the three others are its choice, too.",
    draw: () => [
      wall("right", "B2", BLUE), shapes.ring(at("B2"), SIZE, 12, { "stroke-dasharray": "4 4" }),
      shapes.trail(["B2", "B3", "C3"].map(at), SIZE), stone(RED, "C3"), stone(BLUE, "B4"), note("D3", "wall"),
      wall("right", "C3", RED), shapes.outline([WALLS.right, at("C3")], SIZE),
      ...[["below", "C2"], ["below", "C3"], ["right", "B3"]].map(([side, name]) => wall(side, name, RED, { opacity: 0.35 })),
    ],
  },
  {
    title: "3. Own the most cells",
    text: "Walls part the board into regions. Once no region holds stones of two colours, the game is over: a region is theirs whose stones stand in it, and the most cells win.",
    alt: "Walls part the board: Red owns ten cells, Blue owns six.",
    draw: () => {
      const red = ["A1", "B1", "A2", "B2", "A3", "B3", "A4", "B4", "C4", "D4"].map(at);
      return [
        ...CELLS.map((cell) => shapes.territory(cell, red.includes(cell) ? RED : BLUE, SIZE)),
        wall("right", "B1", RED), wall("right", "B2", BLUE), wall("right", "B3", RED),
        wall("below", "C3", BLUE), wall("below", "D3", RED),
        stone(RED, "A2"), stone(RED, "C4"), stone(BLUE, "C1"), stone(BLUE, "D3"), note("A4", "Red 10"), note("D1", "Blue 6"),
      ];
    },
  },
];

// Words on a cell.
function note(name, words) { return shapes.label(...centre(at(name), SIZE), words); }

export function drawRules(box) {
  box.replaceChildren(...PICTURES.map(({ title, text, alt, draw }) => {
    const side = extent(SIZE) - 14, ground = CELLS.map((cell) => shapes.tile(cell, SIZE, "var(--tile)"));
    const picture = shapes.element("svg", { viewBox: `14 14 ${side} ${side}`, role: "img", "aria-label": alt },
      shapes.frame(SIZE), ...ground, ...draw());
    return make("figure", {}, picture, make("figcaption", {}, make("b", {}, title), ` ${text}`));
  }));
}
