// The dialog of a new game: rules, who plays each colour, clocks.

import { CustomRules } from "./custom.js";
import { COLOURS } from "./geometry.js";
import { $, disc, make, readStore, writeStore } from "./html.js";
import { choiceText, describeElo, describeLevel } from "./words.js";

const SLOW_SECONDS = 2;  // a move that takes longer is told before
const CUSTOM = "custom";  // where presets have their number

export class Setup {
  // on has start(fields of a game's copy), and check(rules), which returns rules to choose or throws what is wrong.
  constructor(on) {
    this.dialog = $("#setup");
    this.presets = [];
    this.seats = readStore("seats", []);
    this.custom = new CustomRules({ check: on.check, change: () => this.drawCustom() });
    $("#setup-rules").addEventListener("change", () => this.chooseRules());
    $("#setup-clock").addEventListener("change", () => this.drawClock());
    $("#setup-swap").addEventListener("click", () => this.swap());
    $("#setup-cancel").addEventListener("click", () => this.dialog.close());
    $("#setup form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.dialog.close();
      on.start(this.read());
    });
  }

  setPresets(presets, level) {
    this.presets = presets;
    this.level = level;
    this.chosen ??= presets[0];
    $("#setup-rules").replaceChildren(
      ...presets.map((preset, index) => make("option", { value: index, title: preset.name }, choiceText(preset))),
      make("option", { value: CUSTOM }, "Your own rules …"));
    const wanted = presets.findIndex((preset) => preset.name === readStore("rules", ""));
    $("#setup-rules").value = Math.max(0, wanted);
    this.chooseRules();
    this.drawClock();
  }

  get isCustom() { return $("#setup-rules").value === CUSTOM; }

  // Rules without errors: while custom ones have some, those before.
  get preset() { return this.chosen; }

  chooseRules() {
    if (this.isCustom) this.custom.fill(this.chosen.all);
    else this.chosen = this.presets[Number($("#setup-rules").value)];
    $("#custom").hidden = !this.isCustom;
    $("#setup-start").disabled = this.isCustom && !this.custom.choice;
    this.drawSeats();
  }

  drawCustom() {
    if (!this.isCustom) return;
    $("#setup-start").disabled = !this.custom.choice;
    if (!this.custom.choice) return;
    this.chosen = this.custom.choice;
    this.drawSeats();
  }

  open() {
    this.drawSeats();  // How long a level takes may be known by now.
    this.dialog.showModal();
    $("#setup-start").focus();
  }

  drawSeats() {
    const { players, machine, about } = this.preset;
    const rows = [];
    const eloOf = (level) => describeElo(level, machine.zero);
    for (let player = 0; player < players; player++) {
      const chosen = this.seats[player] ?? (player === 0 ? "person" : this.level);
      const select = make("select", {
        id: `seat-${player}`, "aria-label": `${COLOURS[player]} is played by`,
        onchange: (event) => {
          this.seats[player] = event.target.value;
          event.target.title = event.target.selectedOptions[0].title;
        },
      }, make("option", { value: "person", selected: chosen === "person" }, "a person"),
      make("optgroup", { label: "the machine" }, ...machine.levels.map((level) =>
        make("option", { value: level.name, selected: chosen === level.name, title: eloOf(level) }, describeLevel(level)))));
      select.title = select.selectedOptions[0].title;
      rows.push(make("div", { class: "seat" }, disc(player), make("span", {}, COLOURS[player]), select));
    }
    $("#setup-seats").replaceChildren(...rows);
    $("#setup-about").textContent = about;
    const searches = machine.levels.map((level) => level.simulations);
    const slow = machine.levels.filter((level) => machine.secondsOf(level.simulations) >= SLOW_SECONDS);
    const times = slow.map(({ name, simulations }) => `${name} ${Math.round(machine.secondsOf(simulations))} s`);
    const waits = times.length ? ` On this machine a move takes about: ${times.join(", ")}.` : "";
    $("#setup-machine").textContent = `The machine is ${machine.name}.${waits}`;
    $("#setup-machine").title = `${searches[0]} to ${searches.at(-1)} simulations a move`;
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
      seats.push(value);
      this.seats[player] = value;
    }
    writeStore("rules", preset.name);
    writeStore("seats", this.seats);
    const clock = $("#setup-clock").checked
      ? { minutes: Number($("#setup-minutes").value), increment: Number($("#setup-increment").value) } : null;
    return { rules: preset.fields, seats, clock };
  }
}
