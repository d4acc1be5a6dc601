// The board in a notebook: the page's board and its picking, told by the widget's Python side.

import { Board } from "./board.js";
import { COLOURS } from "./geometry.js";
import { disc, make, percent } from "./html.js";
import { readTree, step } from "./moves.js";
import * as picking from "./picking.js";

const NEW_GAME = "New game", LEVEL = "level of the machine", SEAT = "who begins";

class Game {
  constructor(model, element) {
    this.model = model;
    this.pick = picking.NOTHING;
    this.isWaiting = false;
    this.nodes = new Map();
    this.hasPointer = matchMedia("(hover: hover)").matches;
    this.build(element);
    this.changed = () => this.onView();
    this.told = (message) => this.onMessage(message);
    model.on("change:view", this.changed);
    model.on("msg:custom", this.told);
    this.onView();
  }

  close() {
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
    this.board = new Board(svg, {
      cell: (cell) => this.onCell(cell), drag: (from, to) => this.onDrag(from, to),
      side: (side) => this.onSide(side), edge: () => {}, back: () => this.onBack(),
      say: (text) => { this.says.textContent = text; },
    });
    this.status = make("p", { class: "status" });
    this.advice = make("p", { class: "advice" });
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
      make("div", { class: "left" }, svg, this.status, this.advice, this.error, this.says),
      make("div", { class: "right" }, this.players, this.rules, this.buildButtons(), this.moves, this.buildSteps(),
        make("div", { class: "row" }, make("button", { onclick: () => this.onNew() }, NEW_GAME), this.level, this.seat)));
  }

  buildButtons() {
    const button = (words, title, onclick) => make("button", { title, onclick }, words);
    this.undo = button("Undo pick", "undo the last pick (Escape)", () => this.onBack());
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
    if (!before || before.game !== view.game || before.current !== view.current) this.pick = picking.NOTHING;
    this.isWaiting = false;
    this.nodes = readTree(view);
    if (!before || before.game !== view.game) this.drawChoices();
    this.drawn = view;
    this.draw();
  }

  onMessage(message) {
    if (message.type !== "error") return;
    this.isWaiting = false;
    this.pick = picking.NOTHING;
    this.draw();
    this.error.textContent = message.error;
    this.error.hidden = false;
  }

  // Drawing.

  draw() {
    const { view } = this, { evaluation } = view;
    const isFull = view.hint && evaluation && evaluation.simulations >= view.hintSimulations;
    this.error.hidden = true;
    this.board.draw({
      position: view.position, pick: this.pick, active: view.mayPlay && !this.isWaiting, allEdges: false,
      ideas: isFull && this.pick.origin === null ? evaluation.ideas : null,
      owners: view.evaluates && !view.position.isOver ? evaluation?.owners : null,
      wallPlayer: view.position.player,
    });
    this.drawPlayers();
    this.drawMoves();
    this.rules.textContent = view.rules.text;
    const earlier = view.current === view.tip ? "" : "Earlier position · ";
    const searching = view.thinking && !view.status.includes("thinking") ? " · searching …" : "";
    this.status.textContent = view.error || `${earlier}${view.status}${searching}`;
    this.advice.textContent = view.mayPlay && !this.isWaiting
      ? picking.advice(view.position, this.pick, this.hasPointer) : "";
    this.undo.disabled = this.pick === picking.NOTHING;
    this.takeBack.disabled = view.nodes.length < 2;
    this.hint.disabled = view.position.isOver;
    this.resign.disabled = view.isOver;
    this.show.setAttribute("aria-pressed", view.evaluates);
  }

  drawPlayers() {
    const { view } = this, chances = view.evaluates ? view.result ?? view.evaluation?.chances : null;
    this.players.replaceChildren(...view.seats.map((seat, player) => {
      const who = seat === "person" ? "you" : `machine, ${seat}`;
      const cells = view.position.territory[player];
      const isNext = !view.isOver && view.position.player === player;
      return make("li", { class: isNext ? "next" : "" }, disc(player),
        make("span", { class: "who" }, `${COLOURS[player]} · ${who}`),
        chances ? make("b", { title: "chance to win" }, percent(chances[player])) : null,
        make("span", { class: "quiet" }, `${cells} cell${cells === 1 ? "" : "s"}`));
    }));
  }

  drawMoves() {
    const { view } = this, line = [];
    let node = this.nodes.get(view.tip);
    while (node.parent !== null) {
      line.unshift(node);
      node = this.nodes.get(node.parent);
    }
    this.moves.replaceChildren(...line.map((each) => make("button", {
      "aria-current": each.number === view.current ? "step" : null,
      onclick: () => this.send("go", { node: each.number }),
    }, `${each.depth}. `, disc(each.mover), ` ${each.move}`)));
    const here = this.moves.querySelector("[aria-current]");
    if (here) this.moves.scrollTop = here.offsetTop - this.moves.clientHeight / 2;
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

  // Moves.

  play(move) {
    this.isWaiting = true;
    this.send("play", { node: this.view.current, move });
    this.draw();
  }

  setPick(pick) {
    this.pick = pick;
    this.draw();
    this.says.textContent = this.advice.textContent;
  }

  onCell(cell) {
    const { view } = this;
    if (!view.mayPlay || this.isWaiting) return;
    const found = picking.chooseCell(view.position, this.pick, cell);
    if (found.move) this.play(found.move);
    else this.setPick(found.pick);
  }

  onDrag(from, to) {
    const { view } = this;
    if (!view.mayPlay || this.isWaiting || !picking.stonesToPick(view.position).includes(from)) return;
    const picked = { origin: from, target: null };
    this.setPick(picking.cellsToPick(view.position, picked).includes(to) ? { origin: from, target: to } : picked);
  }

  onSide(side) {
    const move = picking.chooseSide(this.view.position, this.pick, side);
    if (move) this.play(move);
  }

  onBack() {
    if (this.pick === picking.NOTHING) return;
    const before = picking.undo(this.pick);
    this.setPick(before.origin === null ? picking.NOTHING : before);
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
