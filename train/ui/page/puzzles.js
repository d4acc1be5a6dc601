// Puzzles: the list to choose from, and the panel of the one that is being solved.

import { COLOURS } from "./geometry.js";
import { $, make, percent, readStore, writeStore } from "./html.js";
import { titleOfRules } from "./words.js";

const HARDEST = 5;

export class Puzzles {
  // on has open(puzzle) and solve().
  constructor(on) {
    this.on = on;
    this.all = [];
    this.done = readStore("puzzles", {});  // state by key
    this.dialog = $("#puzzles");
    $("#puzzles-close").addEventListener("click", () => this.dialog.close());
    $("#puzzle-solution").addEventListener("click", () => on.solve());
    $("#puzzle-next").addEventListener("click", () => this.openNext());
    $("#puzzle-list").addEventListener("click", () => this.open());
  }

  set(puzzles) { this.all = puzzles; }

  open() {
    const solved = this.all.filter(({ key }) => this.done[key] === "solved").length;
    $("#puzzles-about").textContent = this.all.length
      ? `Find the only winning move. ${solved} of ${this.all.length} solved.`
      : "No puzzles come with this version. python -m train puzzles finds some; play --puzzles FILE opens them here.";
    const levels = [...new Set(this.all.map(({ difficulty }) => difficulty))];
    $("#puzzles-all").replaceChildren(...levels.flatMap((level) => [
      make("h3", {}, `${stars(level)} `, make("span", { class: "quiet" }, `difficulty ${level} of ${HARDEST}`)),
      make("div", { class: "puzzle-grid" }, ...this.all.map((puzzle, index) =>
        puzzle.difficulty === level ? this.button(puzzle, index) : null)),
    ]));
    if (!this.dialog.open) this.dialog.showModal();
  }

  button(puzzle, index) {
    const { key, variant } = puzzle;
    const state = this.done[key], told = { solved: ", solved", shown: ", solution seen" }[state] ?? "";
    return make("button", {
      class: state ?? "", "aria-label": `puzzle ${index + 1}${told}`, title: titleOfRules(variant),
      onclick: () => { this.dialog.close(); this.on.open(puzzle); },
    }, String(index + 1), make("span", { "aria-hidden": "true" }, { solved: " ✓", shown: " ·" }[state] ?? ""));
  }

  // The next puzzle that is not solved yet, after the one at the table.
  openNext() {
    const here = this.all.findIndex(({ key }) => key === this.key);
    const order = [...this.all.slice(here + 1), ...this.all.slice(0, Math.max(0, here))];
    const next = order.find(({ key }) => this.done[key] !== "solved") ?? order[0];
    if (next) this.on.open(next);
  }

  draw(view) {
    const { puzzle } = view;
    $("#puzzle").hidden = !puzzle;
    this.key = puzzle?.key;
    if (!puzzle) return;
    if (puzzle.state !== "open" && this.done[puzzle.key] !== "solved" && this.done[puzzle.key] !== puzzle.state) {
      this.done[puzzle.key] = puzzle.state;
      writeStore("puzzles", this.done);
    }
    const number = this.all.findIndex(({ key }) => key === puzzle.key) + 1;
    $("#puzzle-title").textContent = `Puzzle ${number} of ${this.all.length}  ${stars(puzzle.difficulty)}`;
    $("#puzzle-told").textContent = words(view);
    $("#puzzle-told").className = puzzle.state;
    $("#puzzle-solution").hidden = puzzle.state !== "open";
    $("#puzzle-next").hidden = puzzle.state === "open" || this.all.length < 2;
  }
}

// Says what to do, with moves that no line end splits.
function words(view) { return told(view).replaceAll("->", "-\u2060>"); }

function told({ puzzle, position }) {
  const last = puzzle.tried.at(-1);
  if (puzzle.state === "open") {
    return last ? `${last} does not win. Try another move.`
      : `${COLOURS[position.player]} to move: find the one move that wins.`;
  }
  const played = puzzle.played && puzzle.played !== puzzle.solution ? ` The game went on with ${puzzle.played}.` : "";
  const begin = puzzle.state === "solved" ? "Solved" : "The solution";
  const side = COLOURS[puzzle.mover];
  return `${begin}: ${puzzle.solution}, ${side} ${percent(puzzle.chance)}; the next best move, ${side} ${percent(puzzle.nextBest)}.${played}`;
}

function stars(difficulty) { return "★".repeat(difficulty) + "☆".repeat(HARDEST - difficulty); }
