// The board in a notebook: the page's board and its panels, told by the widget's Python side.

import { COLOURS } from "./geometry.js";
import { make } from "./html.js";
import { drawMoves, readTree, step } from "./moves.js";
import * as panels from "./panels.js";
import { Picker } from "./picker.js";

const NEW_GAME = "New game", LEVEL = "level of the machine", SEAT = "who begins";

class Game {
  constructor(model, element) {
    this.model = model;
    this.nodes = new Map();
    this.build(element);
    this.changed = () => this.onView();
    this.told = (message) => this.onMessage(message);
    this.timer = setInterval(() => this.tick(), 500);
    model.on("change:view", this.changed);
    model.on("msg:custom", this.told);
    this.onView();
  }

  close() {
    clearInterval(this.timer);
    this.model.off("change:view", this.changed);
    this.model.off("msg:custom", this.told);
  }

  get view() { return this.model.get("view"); }

  send(type, fields = {}) { this.model.send({ type, ...fields }); }

  // The parts, from the board on the left to the moves on the right.

  build(element) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", "board; arrow keys go from cell to cell, Enter picks, Escape steps back");
    this.picker = new Picker(svg, {
      play: (move) => this.send("play", { node: this.view.current, move }), changed: () => this.draw(),
      say: (text) => { this.says.textContent = text; }, status: () => this.status.textContent,
    });
    this.status = make("p", { class: "status" });
    this.advice = make("p", { class: "advice" });
    this.activity = make("div", { class: "activity quiet", hidden: true });
    this.end = make("div", { class: "end", hidden: true });
    this.ideas = make("div", { class: "ideas", hidden: true });
    this.error = make("p", { class: "error", role: "alert", hidden: true, onclick: () => { this.error.hidden = true; } });
    this.says = make("p", { class: "unseen", "aria-live": "polite" });
    this.players = make("ul", { class: "players", "aria-label": "players" });
    this.moves = make("nav", { class: "moves", "aria-label": "move list" });
    this.rules = make("p", { class: "quiet" });
    this.level = make("select", { "aria-label": LEVEL, title: LEVEL });
    this.seat = make("select", { "aria-label": SEAT, title: SEAT });
    // Jupyter's own keys would take the arrows and letters that are meant for the board.
    element.setAttribute("data-lm-suppress-shortcuts", "true");
    element.classList.add("wallgo");
    element.append(
      make("div", { class: "left" }, svg, this.status, this.advice, this.activity, this.error, this.says),
      make("div", { class: "right" }, this.end, this.players, this.rules, this.buildButtons(), this.ideas, this.moves, this.buildSteps(),
        make("div", { class: "row" }, make("button", { onclick: () => this.onNew() }, NEW_GAME), this.level, this.seat)));
  }

  buildButtons() {
    const button = (words, title, onclick) => make("button", { title, onclick }, words);
    this.undo = button("Undo pick", "undo the last pick (Escape)", () => this.picker.undo());
    this.takeBack = button("Take back", "take back to your last move", () => this.send("takeback"));
    this.hint = button("Hint", "show good moves", () => this.send("hint"));
    this.show = button("Evaluation", "each player's chance to win, and the expected territory",
      () => this.send("show", { evaluation: !this.view.evaluates }));
    this.resign = button("Resign", "give the game up", () => this.send("resign"));
    return make("div", { class: "row" }, this.undo, this.takeBack, this.hint, this.show, this.resign);
  }

  buildSteps() {
    const ways = [["start", "|◀", "to the start"], ["back", "◀", "back"], ["on", "▶", "on"], ["end", "▶|", "to the end"]];
    return make("div", { class: "row steps" }, ...ways.map(([way, sign, title]) =>
      make("button", { title, "aria-label": title, onclick: () => this.go(way) }, sign)));
  }

  // What Python tells.

  onView() {
    const { view } = this, before = this.drawn;
    if (!view?.position) return;
    const isNew = !before || before.game !== view.game;
    this.picker.show(view, !isNew && before.current === view.current);
    this.received = performance.now();
    this.nodes = readTree(view);
    if (isNew) this.drawChoices();
    this.drawn = view;
    this.draw();
  }

  onMessage(message) {
    if (message.type !== "error") return;
    this.picker.refuse();
    this.draw();
    this.error.textContent = message.error;
    this.error.hidden = false;
  }

  // Drawing.

  draw() {
    const { view } = this, { evaluation } = view, ideas = panels.hintsOf(view);
    this.error.hidden = true;
    this.picker.draw({ ideas, owners: view.evaluates && !view.position.isOver ? evaluation?.owners : null });
    panels.drawPlayers(this.players, view, view.evaluates ? view.result ?? evaluation?.chances : null);
    panels.drawIdeas(this.ideas, view, ideas, {
      play: (move) => this.picker.play(move), preview: (idea) => this.picker.board.preview(idea),
    });
    drawMoves(this.moves, view, this.nodes, {
      go: (node) => this.send("go", { node }), remove: (node) => this.send("remove", { node }), showsChances: view.evaluates,
    });
    this.end.hidden = !view.end;
    if (view.end) panels.drawEnd(this.end, view);
    this.rules.textContent = view.rules.text;
    const earlier = view.current === view.tip ? "" : "Earlier position · ";
    this.status.textContent = view.error || `${earlier}${view.status}`;
    this.advice.textContent = this.picker.advice;
    this.undo.disabled = !this.picker.hasPick;
    this.takeBack.disabled = view.nodes.length < 2;
    this.hint.disabled = view.position.isOver;
    this.resign.disabled = view.isOver;
    this.show.setAttribute("aria-pressed", view.evaluates);
    this.tick();
  }

  tick() {
    if (this.drawn) panels.drawActivity(this.activity, this.view.activity, (performance.now() - this.received) / 1000);
  }

  drawChoices() {
    const { view } = this, levels = this.model.get("levels"), options = (words, chosen) => words.map((word, index) =>
      make("option", { value: index, selected: index === chosen }, word));
    const machine = view.seats.find((seat) => seat !== "person");
    const person = Math.max(0, view.seats.indexOf("person"));
    this.level.replaceChildren(...levels.map((level) =>
      make("option", { value: level, selected: level === machine }, level)));
    this.seat.replaceChildren(...options(view.seats.map((_, player) => `you are ${COLOURS[player]}`), person));
  }

  onNew() {
    const { rules } = this.view, own = Number(this.seat.value);
    const seats = this.view.seats.map((_, player) =>
      player === own ? "person" : this.level.value);
    this.send("new", { rules: rules.fields, seats });
  }

  go(way) {
    const node = step(this.view, this.nodes, way);
    if (node !== null) this.send("go", { node });
  }
}

function render({ model, el }) {
  const element = make("div");
  el.append(element);
  const game = new Game(model, element);
  return () => game.close();
}

export default { render };
