// The board editor: stones, walls and the player to move, as a diagram that the rules check.

import { drawDiagram } from "./diagram.js";
import { COLOURS } from "./geometry.js";
import { $, disc, make } from "./html.js";
import * as referee from "./referee.js";
import { choiceText } from "./words.js";

export class Editor {
  // on has change(), start(diagram, mode) and close().
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
    $("#edit-rules").replaceChildren(...presets.map((preset, index) => make("option", { value: index, title: preset.about }, choiceText(preset))));
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
    this.check();
    this.on.change();
  }

  // The position of the text, or null where something is wrong with it.
  check() {
    this.error = "";
    try {
      return referee.look(referee.readDiagram($("#edit-text").value).state);
    } catch (error) {
      this.error = error.message;
      return null;
    }
  }

  draw() {
    $("#edit-error").textContent = this.error || "This position can be played.";
    $("#edit-error").classList.toggle("wrong", this.error !== "");
    $("#edit-play").disabled = $("#edit-analyse").disabled = this.error !== "";
  }

  readText() {
    const text = $("#edit-text").value, named = /^\s*rules:\s*(\S+)/m.exec(text);
    const index = this.presets.findIndex((preset) => named && preset.name === named[1]), position = this.check();
    if (index < 0) this.error = "the diagram's first line must name a preset: rules: wallzero-4stone";
    if (index >= 0 && position) {
      $("#edit-rules").value = index;
      this.drawTools(position.player);
      this.take(position);
    }
    this.on.change();
  }

  finish(mode) { this.on.start($("#edit-text").value, mode); }

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

  diagram() { return drawDiagram(this.scene(), this.preset.name); }
}
