// The board in a notebook: the page's game, board and panels. Python answers for the engine, and plays moves of its own by
// the copy of the game that both keep.

import { EngineClient } from "./engine_client.js";
import { COLOURS } from "./geometry.js";
import { make } from "./html.js";
import { Machine } from "./machine.js";
import { drawMoves, step } from "./moves.js";
import * as panels from "./panels.js";
import { Picker } from "./picker.js";
import { readCopy, writeCopy } from "./saving.js";
import { activityOf, viewOf } from "./view.js";

const NEW_GAME = "New game", LEVEL = "level of the machine", SEAT = "who begins";

// The game of a widget, which all its views show.
class Table {
  constructor(model) {
    this.model = model;
    this.views = new Set();
    const client = new EngineClient((opened) => {
      model.on("msg:custom", (message) => opened.received(message));
      opened.connected((request) => model.send({ text: JSON.stringify(request) }));
    });
    this.machine = new Machine(client, model.get("choices"));
    model.on("change:copy", () => this.take());
    this.take();
  }

  // Takes what Python has made of the game.
  take() {
    const copy = this.model.get("copy");
    if (this.game && JSON.stringify(copy) === this.kept) return;
    this.kept = JSON.stringify(copy);
    this.show(readCopy(copy, this.machine), copy.revision);
  }

  show(game, revision) {
    this.game?.close();
    Object.assign(this, { game, revision });
    game.open(() => this.changed());
    this.changed();
  }

  begin(seats) {
    this.show(readCopy({ rules: this.game.tree.rules, seats, evaluates: this.game.evaluates }, this.machine), this.revision);
  }

  changed() {
    const copy = { ...writeCopy(this.game), revision: this.revision }, text = JSON.stringify(copy);
    if (text !== this.kept) {
      this.kept = text;
      this.model.set("copy", copy);
      this.model.save_changes();
    }
    for (const view of this.views) view.onGame();
  }
}

class View {
  constructor(table, element) {
    this.table = table;
    this.build(element);
    this.timer = setInterval(() => this.tick(), 500);
    table.views.add(this);
    this.onGame();
  }

  close() {
    clearInterval(this.timer);
    this.table.views.delete(this);
  }

  // Does what somebody asks of the game, or says why it cannot be done.
  act(action) {
    try {
      action(this.table.game);
    } catch (error) {
      this.draw();
      this.complain(error.message);
    }
  }

  complain(text) {
    this.error.textContent = text;
    this.error.hidden = false;
  }

  onPick() {
    this.error.hidden = true;
    this.draw();
  }

  // The parts, from the board on the left to the moves on the right.

  build(element) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", "board; arrow keys go from cell to cell, Enter picks, Escape steps back");
    this.picker = new Picker(svg, {
      play: (move) => this.act((game) => game.play(move)), changed: () => this.onPick(), refuse: (text) => this.complain(text),
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
    const button = (words, title, action) => make("button", { title, onclick: () => this.act(action) }, words);
    this.undo = button("Undo pick", "undo the last pick (Escape)", () => this.picker.undo());
    this.takeBack = button("Take back", "take back to your last move", (game) => game.takeBack());
    this.hint = button("Hint", "name the stone of a good move, then the move", (game) => {
      this.picker.drop();
      game.askHint();
    });
    this.show = button("Evaluation", "each player's chance to win, and the expected territory",
      (game) => game.showEvaluation(!game.evaluates));
    this.resign = button("Resign", "give the game up", (game) => game.resign());
    return make("div", { class: "row" }, this.undo, this.takeBack, this.hint, this.show, this.resign);
  }

  buildSteps() {
    const ways = [["start", "|◀", "to the start"], ["back", "◀", "back"], ["on", "▶", "on"], ["end", "▶|", "to the end"]];
    return make("div", { class: "row steps" }, ...ways.map(([way, sign, title]) =>
      make("button", { title, "aria-label": title, onclick: () => this.go(way) }, sign)));
  }

  // Drawing.

  onGame() {
    const before = this.view, { game } = this.table, view = viewOf(game, "");
    this.picker.show(view, this.game === game && before.current === view.current);
    this.view = view;
    if (this.game !== game) this.drawChoices();
    this.game = game;
    this.error.hidden = true;
    this.draw();
  }

  draw() {
    const { view } = this, { evaluation } = view, ideas = panels.hintsOf(view);
    this.picker.draw({ ideas, hinted: panels.hintedCells(view), owners: view.evaluates && !view.position.isOver ? evaluation?.owners : null });
    panels.drawPlayers(this.players, view, view.evaluates ? view.result ?? evaluation?.chances : null);
    panels.drawIdeas(this.ideas, view, ideas, {
      play: (move) => this.picker.play(move), preview: (idea) => this.picker.board.preview(idea),
    });
    drawMoves(this.moves, view, {
      go: (node) => this.act((game) => game.go(node)), remove: (node) => this.act((game) => game.remove(node)),
      showsChances: view.evaluates,
    });
    this.end.hidden = !view.end;
    if (view.end) panels.drawEnd(this.end, view);
    this.rules.textContent = view.rules.text;
    const earlier = view.current === view.tip ? "" : "Earlier position · ";
    this.status.textContent = view.error || `${earlier}${view.status}`;
    this.advice.textContent = (!this.picker.hasPick && panels.hintText(view)) || this.picker.advice;
    this.undo.disabled = !this.picker.hasPick;
    this.takeBack.disabled = view.nodes.size < 2;
    this.hint.disabled = view.position.isOver;
    this.hint.textContent = panels.hintButton(view);
    this.resign.disabled = view.isOver;
    this.show.setAttribute("aria-pressed", view.evaluates);
    this.tick();
  }

  tick() { panels.drawActivity(this.activity, activityOf(this.table.game)); }

  drawChoices() {
    const { seats } = this.view, { levels } = this.table.machine.choices;
    const machine = seats.find((seat) => seat !== "person"), person = Math.max(0, seats.indexOf("person"));
    this.level.replaceChildren(...levels.map(({ name }) => make("option", { value: name, selected: name === machine }, name)));
    this.seat.replaceChildren(...seats.map((_, player) =>
      make("option", { value: player, selected: player === person }, `you are ${COLOURS[player]}`)));
  }

  onNew() {
    const own = Number(this.seat.value);
    this.table.begin(this.view.seats.map((_, player) => (player === own ? "person" : this.level.value)));
  }

  go(way) {
    const node = step(this.view, way);
    if (node !== null) this.act((game) => game.go(node));
  }
}

const tables = new WeakMap();

function render({ model, el }) {
  const element = make("div");
  el.append(element);
  if (!tables.has(model)) tables.set(model, new Table(model));
  const view = new View(tables.get(model), element);
  return () => view.close();
}

export default { render };
