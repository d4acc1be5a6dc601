// The dialog of a new game: rules, who plays each colour, clocks.

import { COLOURS } from "./geometry.js";
import { $, disc, make, readStore, writeStore } from "./html.js";

const DEFAULT_LEVEL = "club";

export class Setup {
  // onStart takes the fields of a `new` message.
  constructor(onStart) {
    this.dialog = $("#setup");
    this.presets = [];
    this.seats = readStore("seats", []);
    $("#setup-rules").addEventListener("change", () => this.drawSeats());
    $("#setup-clock").addEventListener("change", () => this.drawClock());
    $("#setup-swap").addEventListener("click", () => this.swap());
    $("#setup-cancel").addEventListener("click", () => this.dialog.close());
    $("#setup form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.dialog.close();
      onStart(this.read());
    });
  }

  setPresets(presets) {
    this.presets = presets;
    $("#setup-rules").replaceChildren(...presets.map((preset, index) => make("option", { value: index },
      `${preset.name}: ${preset.players} players, ${preset.stones} stones each`)));
    const wanted = presets.findIndex((preset) => preset.name === readStore("rules", ""));
    $("#setup-rules").value = Math.max(0, wanted);
    this.drawSeats();
    this.drawClock();
  }

  get preset() { return this.presets[Number($("#setup-rules").value)]; }

  open() {
    this.dialog.showModal();
    $("#setup-start").focus();
  }

  drawSeats() {
    const { players, machine } = this.preset, rows = [];
    for (let player = 0; player < players; player++) {
      const chosen = this.seats[player] ?? (player === 0 ? "person" : DEFAULT_LEVEL);
      const select = make("select", {
        id: `seat-${player}`, "aria-label": `${COLOURS[player]} is played by`,
        onchange: (event) => { this.seats[player] = event.target.value; },
      }, make("option", { value: "person", selected: chosen === "person" }, "a person"),
      make("optgroup", { label: "the machine" }, ...machine.levels.map((level) =>
        make("option", { value: level.name, selected: chosen === level.name }, levelText(level)))));
      rows.push(make("div", { class: "seat" }, disc(player), make("span", {}, COLOURS[player]), select));
    }
    $("#setup-seats").replaceChildren(...rows);
    const searches = machine.levels.map((level) => level.simulations);
    const measured = machine.levels.some((level) => level.elo !== null)
      ? "Elo 0 plays at random." : "The strength of its levels is not measured.";
    $("#setup-machine").textContent = `The machine is ${machine.name}: ${searches[0]} to ${searches.at(-1)} simulations a move. ${measured}`;
  }

  drawClock() { $("#setup-times").hidden = !$("#setup-clock").checked; }

  swap() {
    const { players } = this.preset;
    const values = [...Array(players).keys()].map((player) => $(`#seat-${player}`).value);
    this.seats = [...values.slice(1), values[0]];
    this.drawSeats();
  }

  read() {
    const { preset } = this, seats = [];
    for (let player = 0; player < preset.players; player++) {
      const value = $(`#seat-${player}`).value;
      seats.push(value === "person" ? { kind: "person" } : { kind: "machine", level: value });
      this.seats[player] = value;
    }
    writeStore("rules", preset.name);
    writeStore("seats", this.seats);
    const clock = $("#setup-clock").checked
      ? { minutes: Number($("#setup-minutes").value), increment: Number($("#setup-increment").value) } : null;
    return { rules: preset.fields, seats, clock };
  }
}

export function levelText(level) {
  return `${level.name} · ${level.elo === null ? "not measured" : `Elo ${Math.round(level.elo)}`}`;
}
