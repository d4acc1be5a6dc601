// The page: keeps the server's view of the game, and draws it with what is being picked.

import { Board } from "./board.js";
import { Connection } from "./connection.js";
import { Editor } from "./editor.js";
import { Files, download } from "./files.js";
import { holdGame, isBlank, keepGame, keptGame, unfinishedGames } from "./games.js";
import { COLOURS, cellName } from "./geometry.js";
import { $, readStore, writeStore } from "./html.js";
import { drawMoves, readTree, step } from "./moves.js";
import * as panels from "./panels.js";
import * as picking from "./picking.js";
import { Puzzles } from "./puzzles.js";
import { drawReview, expectReview } from "./review.js";
import { Setup } from "./setup.js";

const app = {
  view: null, nodes: new Map(), pick: picking.NOTHING, received: 0, spoken: "",
  move: null,  // played, and not answered yet
  isAway: true,  // from the loss of a connection to the first view of the next
  wanted: "",  // the game that was asked for
  offer: null,
  get isWaiting() { return this.move !== null; },
  showsBar: readStore("bar", false), showsLand: readStore("land", false),
};
const hasPointer = matchMedia("(hover: hover)").matches;

const board = new Board($("#board"), { cell: onCell, drag: onDrag, side: onSide, edge: onEdge, back: onBack, say });
const setup = new Setup({
  start: (fields) => connection.send("new", fields),
  check: (rules) => connection.send("rules", { rules }),
});
const puzzles = new Puzzles({
  open: (puzzle) => connection.send("puzzle", { puzzle }), solve: () => connection.send("solution"),
});
const files = new Files({ load: (text) => connection.send("load", { text, rules: app.view.rules.fields }), say: complain });
const editor = new Editor({
  change: draw,
  check: (position) => connection.send("check", { position }),
  start: (position, mode) => {
    closeEditor();
    const keeps = app.view.rules.players === editor.preset.players;
    connection.send("new", { position, mode, seats: keeps ? app.view.seats : undefined });
  },
  close: closeEditor,
});
const connection = new Connection(onMessage, onState);

function onState(isConnected) {
  $("#lost").hidden = isConnected;
  if (!isConnected) app.isAway = true;
}

function onMessage(message) {
  if (message.type === "welcome") onWelcome(message);
  else if (message.type === "game") onGame(message);
  else if (message.type === "error") complain(message.error);
  else if (message.type === "saved") download(message.name, message.text);
  else if (message.type === "rules") setup.checked(message);
  else if (message.type === "checked") editor.checked(message);
}

function onWelcome(message) {
  setup.setPresets(message.presets, message.defaultLevel);
  // A diagram names its rules.
  editor.setPresets(message.presets.filter((preset) => typeof preset.fields === "string"));
  puzzles.set(message.puzzles);
  openGame(location.hash.slice(1) || app.view?.game || "");
}

// Each tab has the game of its address; the server sets one up anew that it does not know any more.
function openGame(game) {
  const copy = app.view?.game === game ? app.view.copy : keptGame(game)?.copy;
  app.wanted = game;
  connection.send("open", { game, copy });
}

function onGame(view) {
  const before = app.view, { move, isAway } = app;
  const isNew = !before || before.game !== view.game;
  const isSame = !isNew && (isAway ? isSamePosition(before, view) : before.current === view.current);
  if (!isSame) app.pick = picking.NOTHING;
  app.move = null;
  app.isAway = false;
  app.view = view;
  app.nodes = readTree(view);
  app.received = performance.now();
  if (isNew) {
    history.replaceState(null, "", `#${view.game}`);
    if (view.evaluates !== wantsEvaluation()) sendShow();
    holdGame(view.game);
    offerGames();
  }
  keepGame(view, app.nodes.get(view.tip).depth);
  hush();
  draw();
  announce(before);
  if (isAway && isSame && move !== null) play(move);
}

// A server that was started anew numbers positions anew.
function isSamePosition(before, view) {
  const place = ({ copy }) => JSON.stringify([copy.plies, copy.current]);
  return place(before) === place(view);
}

async function offerGames() {
  const { view, wanted } = app, isLost = wanted !== "" && wanted !== view.game;
  app.wanted = "";
  app.offer = null;
  const games = isBlank(view.copy) ? await unfinishedGames() : [];
  if (app.view.game !== view.game || isBlank(app.view.copy) !== isBlank(view.copy)) return;
  app.offer = { isLost, games };
  draw();
}

function wantsEvaluation() { return app.showsBar || app.showsLand; }

function sendShow() { connection.send("show", { evaluation: wantsEvaluation() }); }

// Drawing.

function ideasShown() {
  const { view } = app;
  if (!view.hint || !view.evaluation || view.evaluation.simulations < view.hintSimulations) return null;
  return view.evaluation.ideas;
}

function draw() {
  const { view } = app;
  if (!view) return;
  const ideas = editor.isOpen ? null : ideasShown();
  const position = editor.isOpen ? editor.scene() : view.position;
  board.draw({
    position, pick: app.pick, ideas: app.pick.origin === null ? ideas : null,
    active: !editor.isOpen && view.mayPlay && !app.isWaiting, allEdges: editor.isOpen,
    owners: app.showsLand && !editor.isOpen && !view.position.isOver ? view.evaluation?.owners : null,
    wallPlayer: position.player,
  });
  panels.drawPlayers(view);
  panels.drawEvaluation(view, app.showsBar && !editor.isOpen && view.puzzle?.state !== "open");
  panels.drawIdeas(view, ideas, { play, preview: (idea) => board.preview(idea) });
  panels.drawOffer(editor.isOpen ? null : app.offer, { open: openGame });
  panels.drawNote(view, app.showsLand && view.puzzle?.state !== "open");
  puzzles.draw(view);
  drawReview(view, app.nodes);
  drawMoves(view, app.nodes, {
    go: (node) => connection.send("go", { node }), remove: (node) => connection.send("remove", { node }),
    showsChances: app.showsBar,
  });
  drawControls();
  if (editor.isOpen) editor.draw();
}

function drawControls() {
  const { view } = app, playing = view.mode === "play", posed = view.puzzle?.state === "open";
  $("#rules").textContent = view.rules.text;
  $("#status").textContent = statusText();
  $("#advice").textContent = adviceText();
  $("#step-back").disabled = app.pick === picking.NOTHING;
  $("#takeback").disabled = view.nodes.length < 2 || posed;
  $("#hint").disabled = view.position.isOver || posed;
  $("#mode").disabled = posed;
  $("#resign").hidden = !playing || view.isOver || posed;
  $("#rematch").hidden = !playing || !view.isOver || Boolean(view.puzzle);
  document.title = playing && view.mayPlay ? "Your move · WallGo" : "WallGo";
  $("#mode").textContent = playing ? "Analyse" : "Play on";
  $("#mode").title = playing ? "try any move, with variations; the machine does not move"
    : "let the seats play on from this position";
  $("#bar").setAttribute("aria-pressed", app.showsBar);
  $("#land").setAttribute("aria-pressed", app.showsLand);
  $("#edit-panel").hidden = !editor.isOpen;
  $("#game-panel").hidden = editor.isOpen;
  document.body.classList.toggle("editing", editor.isOpen);
  $("#typed").disabled = !view.mayPlay;
}

function adviceText() {
  const { view } = app;
  if (editor.isOpen || app.isWaiting) return "";
  if (view.mayPlay) return picking.advice(view.position, app.pick, hasPointer);
  return view.mode === "play" && view.current !== view.tip ? "Analyse tries other moves here; the last move goes on" : "";
}

function statusText() {
  const { view } = app;
  if (editor.isOpen) return "Editing the board";
  const where = view.mode === "analyse" ? "Analysis · " : view.current !== view.tip ? "Earlier position · " : "";
  return `${where}${view.status}${view.thinking && !view.status.includes("thinking") ? " · searching …" : ""}`;
}

// What is said to screen readers, and what went wrong.

function say(text) { $("#says").textContent = text; }

function announce(before) {
  const { view } = app, node = app.nodes.get(view.current);
  const played = node.move ? `${COLOURS[node.mover]} ${node.move}. ` : "";
  const words = `${played}${statusText()}`;
  if (words !== app.spoken && (!before || before.current !== view.current || before.status !== view.status)) say(words);
  app.spoken = words;
}

function complain(text) {
  app.move = null;
  app.wanted = "";
  app.pick = picking.NOTHING;
  draw();
  $("#error").textContent = text;
  $("#error").hidden = false;
}

function hush() { $("#error").hidden = true; }

// Moves.

// The pick stays on the board until the server answers, be it one that was started anew.
function play(move) {
  if (app.isWaiting) return;
  app.move = move;
  app.offer = null;
  if (!app.isAway) connection.send("play", { node: app.view.current, move });
  draw();
}

function setPick(pick) {
  app.move = null;  // Undone, it is not sent again.
  app.pick = pick;
  draw();
  const picked = pick.target ?? pick.origin, { position } = app.view;
  const named = picked === null || position.inSetup ? "" : `${cellName(picked, position.size)} picked. `;
  say(`${named}${picking.advice(position, pick, hasPointer)}`);
}

function onCell(cell) {
  if (editor.isOpen) {
    editor.toggleStone(cell);
    return;
  }
  const { view } = app;
  if (!view || !view.mayPlay || app.isWaiting) {
    if (view) say(statusText());
    return;
  }
  const found = picking.chooseCell(view.position, app.pick, cell);
  if (found.move) play(found.move);
  else setPick(found.pick);
}

function onDrag(from, to) {
  const { view } = app;
  if (editor.isOpen || !view?.mayPlay || app.isWaiting || !picking.stonesToPick(view.position).includes(from)) return;
  const picked = { origin: from, target: null };
  setPick(picking.cellsToPick(view.position, picked).includes(to) ? { origin: from, target: to } : picked);
}

function onSide(side) {
  const move = picking.chooseSide(app.view.position, app.pick, side);
  if (move) play(move);
}

function onEdge(place) { if (editor.isOpen) editor.toggleWall(place); }

function onBack() {
  if (app.pick !== picking.NOTHING) setPick(picking.undo(app.pick).origin === null ? picking.NOTHING : picking.undo(app.pick));
}

function closeEditor() {
  editor.isOpen = false;
  draw();
}

// Buttons and keys.

function toggle(key, store) {
  app[key] = !app[key];
  writeStore(store, app[key]);
  sendShow();
  draw();
}

function takeBack() {
  if (app.pick !== picking.NOTHING) onBack();
  else connection.send("takeback");
}

function go(way) {
  const node = step(app.view, app.nodes, way);
  if (node !== null) connection.send("go", { node });
}

const actions = {
  "new": () => setup.open(),
  open: () => files.open(),
  save: () => connection.send("save"),
  edit: () => { editor.open(app.view); },
  "step-back": onBack,
  takeback: () => connection.send("takeback"),
  hint: () => connection.send("hint"),
  bar: () => toggle("showsBar", "bar"),
  land: () => toggle("showsLand", "land"),
  "puzzles-open": () => puzzles.open(),
  review: () => {
    expectReview();
    connection.send("review", { theme: theme.value });
  },
  mode: () => connection.send("mode", { mode: app.view.mode === "play" ? "analyse" : "play" }),
  resign: () => { if (confirm("Resign this game?")) connection.send("resign"); },
  rematch: () => {
    const { copy, rules, seats } = app.view;
    connection.send("new", {
      rules: rules.fields, position: copy.position, seats: [...seats.slice(1), seats[0]], clock: copy.clock,
    });
  },
  help: () => $("#keys").showModal(),
  "keys-close": () => $("#keys").close(),
  first: () => go("start"), previous: () => go("back"), next: () => go("on"), last: () => go("end"),
};
for (const [id, action] of Object.entries(actions)) $(`#${id}`).addEventListener("click", action);

const keys = {
  ArrowLeft: () => go("back"), ArrowRight: () => go("on"), Home: () => go("start"), End: () => go("end"),
  Escape: onBack, u: takeBack, h: actions.hint, e: actions.bar, t: actions.land, a: actions.mode, n: actions.new,
  r: () => $("#review").click(),
  b: () => board.hits[board.focus].focus(), "?": actions.help,
};
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (typing || document.querySelector("dialog[open]") || !app.view || editor.isOpen) return;
  if (!(event.key in keys) || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  keys[event.key]();
});

$("#error").addEventListener("click", hush);
$("#type-move").addEventListener("submit", (event) => {
  event.preventDefault();
  const move = $("#typed").value.trim();
  if (move) play(move);
  $("#typed").value = "";
});

const theme = $("#theme");
theme.value = readStore("theme", "auto");
function applyTheme() {
  if (theme.value === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme.value;
}
theme.addEventListener("change", () => {
  writeStore("theme", theme.value);
  applyTheme();
});
applyTheme();
addEventListener("hashchange", () => {
  const game = location.hash.slice(1);
  if (app.view && game && game !== app.view.game) openGame(game);
});
setInterval(() => {
  if (app.view?.clocks && $("#lost").hidden) panels.drawClocks(app.view, (performance.now() - app.received) / 1000);
}, 100);
