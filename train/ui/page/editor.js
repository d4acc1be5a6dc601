// The board editor: stones, walls and the player to move, as a diagram that the server checks.

import { COLOURS, LETTERS, HORIZONTAL, VERTICAL, columnName } from "./geometry.js";
import { $, disc, make } from "./html.js";

export class Editor {
  // on has change(), check(diagram), start(diagram, mode) and close().
  constructor(on) {
    this.on = on;
    this.isOpen = false;
    this.error = "";
    $("#edit-rules").addEventListener("change", () => this.clear());
    $("#edit-turn").addEventListener("change", () => this.changed());
    $("#edit-clear").addEventListener("click", () => this.clear());
    $("#edit-play").addEventListener("click", () => this.finish("play"));
    $("#edit-analyse").addEventListener("click", () => this.finish("analyse"));
    $("#edit-cancel").addEventListener("click", () => this.on.close());
    $("#edit-read").addEventListener("click", () => this.readText());
  }

  setPresets(presets) {
    this.presets = presets;
    $("#edit-rules").replaceChildren(...presets.map((preset, index) => make("option", { value: index }, preset.name)));
  }

  get preset() { return this.presets[Number($("#edit-rules").value)]; }

  open(view) {
    this.isOpen = true;
    const known = this.presets.findIndex((preset) => preset.name === view.rules.name);
    $("#edit-rules").value = Math.max(0, known);
    const usable = known >= 0 && view.rules.size === this.preset.size;
    this.stones = new Map();
    this.walls = new Map();
    if (usable) this.take(view.position);
    this.drawTools(usable ? view.position.player : 0);
    this.changed();
  }

  take(position) {
    this.stones.clear();
    this.walls.clear();
    position.stones.forEach((cells, player) => cells.forEach((cell) => {
      if (cell >= 0) this.stones.set(cell, player);
    }));
    for (const [orientation, cell, player] of position.walls) this.walls.set(`${orientation},${cell}`, player);
  }

  clear() {
    this.stones = new Map();
    this.walls = new Map();
    this.drawTools(0);
    this.changed();
  }

  drawTools(player) {
    const { players } = this.preset;
    const all = [...Array(players).keys()];
    $("#edit-turn").replaceChildren(...all.map((each) => make("option", { value: each, selected: each === player }, COLOURS[each])));
    $("#edit-colours").replaceChildren(...all.map((each) => make("label", {},
      make("input", { type: "radio", name: "edit-colour", value: each, checked: each === 0 }), disc(each), ` ${COLOURS[each]}`)));
  }

  get colour() { return Number(document.querySelector("[name=edit-colour]:checked").value); }

  toggleStone(cell) {
    if (this.stones.get(cell) === this.colour) this.stones.delete(cell);
    else this.stones.set(cell, this.colour);
    this.changed();
  }

  toggleWall(place) {
    const key = place.join();
    if (this.walls.get(key) === this.colour) this.walls.delete(key);
    else this.walls.set(key, this.colour);
    this.changed();
  }

  changed() {
    $("#edit-text").value = this.diagram();
    this.error = "checking …";
    this.on.check(this.diagram());
    this.on.change();
  }

  checked(message) {
    this.error = message.error;
    if (message.position && this.isReading) this.take(message.position);
    this.isReading = false;
    this.on.change();
  }

  draw() {
    $("#edit-error").textContent = this.error || "This position can be played.";
    $("#edit-error").classList.toggle("wrong", this.error !== "");
    $("#edit-play").disabled = $("#edit-analyse").disabled = this.error !== "";
  }

  readText() {
    const text = $("#edit-text").value, named = /^\s*rules:\s*(\S+)/m.exec(text);
    const index = this.presets.findIndex((preset) => named && preset.name === named[1]);
    if (index < 0) {
      this.error = "the diagram's first line must name a preset: rules: wallzero-4stone";
      this.on.change();
      return;
    }
    $("#edit-rules").value = index;
    const turn = /^\s*turn:\s*([RBGY])/m.exec(text);
    this.drawTools(turn ? LETTERS.indexOf(turn[1]) : 0);
    this.isReading = true;
    this.on.check(text);
  }

  finish(mode) { this.on.start(this.diagram(), mode); }

  // A position as the board draws it.
  scene() {
    const { size, players } = this.preset;
    const stones = [...Array(players).keys()].map((player) =>
      [...this.stones].filter(([, owner]) => owner === player).map(([cell]) => cell));
    const walls = [...this.walls].map(([key, player]) => [...key.split(",").map(Number), player]);
    return {
      size, stones, walls, owner: Array(size * size).fill(-1), last: null, inSetup: false,
      player: Number($("#edit-turn").value), legal: { cells: [], plays: {} },
    };
  }

  // The text of wallgo_jax.formats.diagram.
  diagram() {
    const { size, name } = this.preset, border = `   ${"+---".repeat(size)}+`;
    const wall = (orientation, cell) => this.walls.get(`${orientation},${cell}`);
    const heading = [...Array(size).keys()].map((column) => `  ${columnName(column)} `).join("");
    const lines = [`rules: ${name}`, `turn: ${LETTERS[$("#edit-turn").value]}`, `   ${heading}`, border];
    for (let row = 0; row < size; row++) {
      let cells = `${String(row + 1).padStart(2)} |`, below = "   +";
      for (let column = 0; column < size; column++) {
        const cell = row * size + column, right = wall(VERTICAL, cell), under = wall(HORIZONTAL, cell);
        cells += ` ${this.stones.has(cell) ? LETTERS[this.stones.get(cell)] : "."} `;
        if (column < size - 1) cells += right === undefined ? " " : LETTERS[right].toLowerCase();
        below += under === undefined ? "   +" : `=${LETTERS[under].toLowerCase()}=+`;
      }
      lines.push(`${cells}|`, row < size - 1 ? below : border);
    }
    return `${lines.join("\n")}\n`;
  }

}
