// Positions as text that a person can write, as wallgo_jax.formats.diagram has them: the rules, the player to move, the
// board.

import { COLOURS, HORIZONTAL, LETTERS, VERTICAL, columnName } from "./geometry.js";

const KEYS = ["rules", "grid", "turn", "walls left", "over"];
const PITCH = 4;  // characters from one cell to the next

// Whether a text is a diagram, by how it begins.
export function isDiagram(text) { return new RegExp(`^(\\s|#.*\\n)*(${KEYS.join("|")})\\s*:`).test(text); }

// position: size, stones (cells of each player), walls [orientation, cell, player], player; rules: a preset's name or its
// fields.
export function drawDiagram({ size, stones, walls, player }, rules) {
  const holders = new Map(stones.flatMap((cells, owner) => cells.map((cell) => [cell, owner])));
  const builders = new Map(walls.map(([orientation, cell, owner]) => [`${orientation},${cell}`, owner]));
  const wall = (orientation, cell) => builders.get(`${orientation},${cell}`);
  const border = `   ${"+---".repeat(size)}+`;
  const heading = [...Array(size).keys()].map((column) => `  ${columnName(column)} `).join("");
  const named = typeof rules === "string" ? rules : JSON.stringify(rules);
  const lines = [`rules: ${named}`, `turn: ${LETTERS[player]}`, `   ${heading}`.trimEnd(), border];
  for (let row = 0; row < size; row++) {
    let cells = `${String(row + 1).padStart(2)} |`, below = "   +";
    for (let column = 0; column < size; column++) {
      const cell = row * size + column, right = wall(VERTICAL, cell), under = wall(HORIZONTAL, cell);
      cells += ` ${holders.has(cell) ? LETTERS[holders.get(cell)] : "."} `;
      if (column < size - 1) cells += right === undefined ? " " : LETTERS[right].toLowerCase();
      below += under === undefined ? "   +" : `=${LETTERS[under].toLowerCase()}=+`;
    }
    lines.push(`${cells}|`, row < size - 1 ? below : border);
  }
  return `${lines.join("\n")}\n`;
}

// What a diagram says: rules (text), turn (a letter or undefined), wallsLeft (text or undefined), isOver, size, stones as
// [player, cell, number or null], and walls as [orientation, cell, player].
export function parseDiagram(text) {
  const { header, board } = split(text);
  if (!header.rules) throw new Error("the line 'rules: ...' is missing");
  const { size, left } = measure(board), stones = [], walls = [];
  if (header.grid && header.grid !== String(size)) throw new Error(`grid ${header.grid}: a page has boards of their own grid`);
  for (let row = 0; row < size; row++) {
    const [number, line] = framed(board[2 + 2 * row], left, size, "|"), under = framed(board[3 + 2 * row], left, size, "+");
    for (let column = 0; column < size; column++) {
      const cell = row * size + column, at = left + 1 + PITCH * column, name = `${columnName(column)}${row + 1}`;
      stones.push(...readCell(line.slice(at, at + 3).trim(), cell, `line ${number}: ${name}`));
      if (column < size - 1) walls.push(...readWall(line[at + 3].trim(), VERTICAL, cell, `line ${number}: ${name}, right side`));
      if (row === size - 1) continue;
      const drawn = under[1].slice(at, at + 3).trim(), bare = drawn.replace(/^=+|=+$/g, "") || drawn;
      walls.push(...readWall(bare, HORIZONTAL, cell, `line ${under[0]}: ${name}, lower side`));
    }
  }
  return { rules: header.rules, turn: header.turn, wallsLeft: header["walls left"], isOver: header.over === "yes", size, stones, walls };
}

function split(text) {
  const header = {}, board = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (!line.trim() || line.trimStart().startsWith("#")) continue;
    const colon = line.indexOf(":"), key = line.slice(0, Math.max(0, colon)).trim();
    if (colon < 0) {
      board.push([index + 1, line.trimEnd()]);
    } else if (!KEYS.includes(key) || key in header) {
      const fault = key in header ? "twice" : "unknown";
      throw new Error(`line ${index + 1}: '${key}' is ${fault}; keys are ${KEYS.join(", ")}`);
    } else {
      header[key] = line.slice(colon + 1).trim();
    }
  }
  return { header, board };
}

// The board's size, from its heading of column letters, and the place of its left border.
function measure(board) {
  if (board.length < 2) throw new Error("the board is missing; it begins with the letters of its columns");
  const [number, heading] = board[0], names = heading.trim().split(/\s+/), size = names.length;
  if (size < 3 || size > 9 || names.some((name, column) => name !== columnName(column))) {
    throw new Error(`line ${number}: a board of 3 to 9 columns begins with their letters, A B C`);
  }
  if (board.length !== 2 * size + 2) {
    throw new Error(`line ${number}: a board of ${size} columns has ${2 * size + 2} lines, not ${board.length}`);
  }
  const left = board[1][1].indexOf("+");
  framed(board[1], left, size, "+");
  return { size, left };
}

function framed([number, text], left, size, mark) {
  const right = left + PITCH * size;
  if (left < 0 || text[left] !== mark || text[right] !== mark) {
    throw new Error(`line ${number}: the border '${mark}' is not where the columns want it`);
  }
  return [number, text];
}

function readCell(text, cell, name) {
  if (text === "" || text === "." || /^\.[rbgy]$/.test(text)) return [];
  if (!/^[RBGY]\d?$/.test(text)) throw new Error(`${name} is '${text}', not '.' or a stone such as R or R0`);
  return [[LETTERS.indexOf(text[0]), cell, text.length > 1 ? Number(text[1]) : null]];
}

function readWall(text, orientation, cell, name) {
  if (text === "") return [];
  if (!/^[rbgy]$/.test(text)) throw new Error(`${name} is '${text}', not blank or a wall: r, b, g or y`);
  return [[orientation, cell, LETTERS.toLowerCase().indexOf(text)]];
}

// The stones of each player by index, checked against the rules.
export function stonesOf(drawn, rules) {
  const strangers = [...drawn.stones.map(([player]) => player), ...drawn.walls.map(([, , player]) => player)]
    .filter((player) => player >= rules.players);
  if (strangers.length) throw new Error(`${COLOURS[strangers[0]]} does not play in a game of ${rules.players} players`);
  const stones = [...Array(rules.players).keys()].map((player) => {
    const own = drawn.stones.filter(([owner]) => owner === player), cells = Array(own.length);
    own.forEach(([, cell, number], order) => { cells[number ?? order] = cell; });
    if (own.length > rules.stones || cells.length !== own.length || cells.includes(undefined)) {
      throw new Error(`${COLOURS[player]} has ${own.length} stones; these rules give each player ${rules.stones}, with indices from 0`);
    }
    return cells;
  });
  const placed = drawn.stones.length - rules.start.length, order = rules.order.slice(0, Math.max(0, placed));
  stones.forEach((cells, player) => {
    const due = rules.start.filter(([, , owner]) => owner === player).length + order.filter((each) => each === player).length;
    if (cells.length !== due) throw new Error(`${COLOURS[player]} has ${cells.length} stones where the placement order gives ${due}`);
  });
  if (placed < rules.order.length && drawn.walls.length) throw new Error("the board has walls although not every stone is placed");
  return stones;
}
