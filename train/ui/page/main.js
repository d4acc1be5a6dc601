// The page: keeps the server's view of the game, and draws it with what is being picked.

import { Connection } from "./connection.js";
import { Editor } from "./editor.js";
import { Files, download } from "./files.js";
import { holdGame, isBlank, keepGame, keptGame, playedBefore, unfinishedGames } from "./games.js";
import { COLOURS } from "./geometry.js";
import { $, readStore, writeStore } from "./html.js";
import { drawMoves, readTree, step } from "./moves.js";
import * as panels from "./panels.js";
import { Picker, emptyPosition } from "./picker.js";
import { Puzzles } from "./puzzles.js";
import { drawReview, expectReview, isReviewing } from "./review.js";
import { drawRules } from "./rules.js";
import { Setup } from "./setup.js";

const app = {
  view: null, nodes: new Map(), received: 0, spoken: "",
  typed: [],  // moves that wait for their turn
  sent: "",  // the typed move that is not answered yet
  isAway: true,  // from the loss of a connection to the first view of the next
  wanted: "",  // the game that was asked for
  began: performance.now(),  // when a game was asked for that is not there yet; null once it is
  awaited: 7,  // size of its board; null where the board of before stays
  offer: null,
  showsBar: readStore("bar", false), showsLand: readStore("land", false),
};

const picker = new Picker($("#board"), {
  play: onPlay, changed: draw, say, status: () => (app.view ? statusText() : ""),
  cell: (cell) => { if (editor.isOpen) editor.toggleStone(cell); return editor.isOpen || app.awaited !== null; },
  edge: (place) => { if (editor.isOpen) editor.toggleWall(place); },
});
const setup = new Setup({
  start: (fields, size) => begin("new", fields, size),
  check: (rules) => connection.send("rules", { rules }),
});
const puzzles = new Puzzles({
  open: (puzzle) => begin("puzzle", { puzzle }), solve: () => connection.send("solution"),
});
const files = new Files({ load: (text) => begin("load", { text, rules: app.view.rules.fields }), say: complain });
const editor = new Editor({
  change: draw,
  check: (position) => connection.send("check", { position }),
  start: (position, mode) => {
    closeEditor();
    const keeps = app.view.rules.players === editor.preset.players;
    begin("new", { position, mode, seats: keeps ? app.view.seats : undefined }, editor.preset.size);
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

// Asks for another game: the first one of its rules takes seconds to set up, and until then its board is empty.
function begin(type, fields, size = app.view?.position.size ?? app.awaited) {
  app.began = performance.now();
  app.awaited = connection.send(type, fields) ? size : null;
  draw();
}

// Each tab has the game of its address; the server sets one up anew that it does not know any more.
function openGame(game) {
  const copy = app.view?.game === game ? app.view.copy : keptGame(game)?.copy;
  app.wanted = game;
  begin("open", { game, copy }, app.view?.game === game ? null : undefined);
}

function onGame(view) {
  const before = app.view, { isAway } = app, { move } = picker;
  const isNew = !before || before.game !== view.game;
  const isSame = !isNew && (isAway ? isSamePosition(before, view) : before.current === view.current);
  picker.show(view, isSame);
  if (isAway) picker.move = null;  // It is played again below.
  app.isAway = false;
  app.view = view;
  app.nodes = readTree(view);
  app.received = performance.now();
  if (isNew || isAway) app.began = app.awaited = null;
  if (isNew) {
    app.typed = [];
    history.replaceState(null, "", `#${view.game}`);
    if (view.evaluates !== wantsEvaluation()) sendShow();
    holdGame(view.game);
    offerGames();
  }
  keepGame(view, app.nodes.get(view.tip).depth);
  if (!isSame) hush();
  draw();
  announce(before);
  if (isAway && isSame && move !== null) picker.play(move);
  else if (picker.move === null) app.sent = "";
  playTyped();
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
  app.offer = { isLost, games, isFirst: isBlank(view.copy) && !playedBefore(view.game) };
  draw();
}

function wantsEvaluation() { return app.showsBar || app.showsLand; }

function sendShow() { connection.send("show", { evaluation: wantsEvaluation() }); }

// Drawing.

function draw() {
  const { view, awaited } = app;
  tick();
  if (awaited !== null) {
    picker.draw({ position: emptyPosition(awaited), active: false });
    for (const words of [$("#status"), $("#advice")]) words.textContent = "";
  }
  if (awaited !== null || !view) return;
  const ideas = editor.isOpen ? null : panels.hintsOf(view);
  if (editor.isOpen) {
    picker.draw({ position: editor.scene(), active: false, allEdges: true });
  } else {
    picker.draw({ ideas, owners: app.showsLand && !view.position.isOver ? view.evaluation?.owners : null });
  }
  panels.drawPlayers($("#players"), view);
  panels.drawEvaluation($("#evaluation"), view, app.showsBar && !editor.isOpen && view.puzzle?.state !== "open");
  panels.drawIdeas($("#ideas"), view, ideas, { play: (move) => picker.play(move), preview: (idea) => picker.board.preview(idea) });
  panels.drawOffer($("#offer"), app.offer, { open: openGame, learn: () => $("#keys").showModal() });
  puzzles.draw(view);
  drawReview(view, app.nodes);
  $("#end").hidden = !view.end || view.mode !== "play";
  if (view.end) panels.drawEnd($("#end-told"), view);
  drawMoves($("#moves"), view, app.nodes, {
    go: (node) => connection.send("go", { node }), remove: (node) => connection.send("remove", { node }),
    showsChances: view.puzzle?.state !== "open",
  });
  drawControls();
  if (editor.isOpen) editor.draw();
}

function drawControls() {
  const { view } = app, playing = view.mode === "play", posed = view.puzzle?.state === "open";
  $("#rules").textContent = view.rules.text;
  $("#status").textContent = statusText();
  $("#advice").textContent = adviceText();
  $("#note").textContent = noteText();
  $("#note").hidden = !$("#note").textContent;
  $("#step-back").disabled = !picker.hasPick;
  $("#takeback").disabled = view.nodes.length < 2 || posed;
  $("#hint").disabled = view.position.isOver || posed;
  $("#mode").disabled = posed;
  $("#resign").hidden = !playing || view.isOver || posed;
  document.title = playing && view.mayPlay ? "Your move · WallGo" : "WallGo";
  $("#mode").textContent = playing ? "Analyse" : "Play on";
  $("#mode").title = playing ? "try any move, with variations; the machine does not move"
    : "let the seats play on from this position";
  $("#bar").setAttribute("aria-pressed", app.showsBar);
  $("#land").setAttribute("aria-pressed", app.showsLand);
  $("#edit-panel").hidden = !editor.isOpen;
  $("#game-panel").hidden = editor.isOpen;
  document.body.classList.toggle("editing", editor.isOpen);
  $("#typed-waits").textContent = app.typed.length ? `Waits for your turn: ${app.typed.join(", ")} (Escape drops it)` : "";
}

// What takes time and how far it is; told by the server, and counted on here.
function tick() {
  const { view } = app, passed = (performance.now() - app.received) / 1000;
  const setUp = { text: "Setting up the game", seconds: (performance.now() - app.began) / 1000, share: null };
  // Not at once: what has the focus would lose it.
  const isClosed = !view || (app.awaited !== null && setUp.seconds > 1);
  for (const part of document.querySelectorAll("header nav, #game-panel")) part.inert = isClosed;
  if (app.began !== null && $("#lost").hidden) panels.drawActivity($("#activity"), setUp, 0);
  else panels.drawActivity($("#activity"), view?.activity ?? null, passed);
  if (!view || !$("#lost").hidden) return;
  panels.drawActivity($("#review-goes"), isReviewing(view) ? view.review : null, passed);
  if (view.clocks) panels.drawClocks($("#players"), view, passed);
}

function adviceText() {
  const { view } = app;
  if (editor.isOpen || picker.move !== null) return "";
  if (view.mayPlay) return picker.advice;
  return view.mode === "play" && view.current !== view.tip ? "Analyse tries other moves here; the last move goes on" : "";
}

function noteText() {
  const { view } = app;
  const missing = app.showsLand && view.evaluation && !view.evaluation.owners && !view.isOver;
  return view.error || (missing ? "No territory estimate: the machine for these rules has no head for it." : "");
}

function statusText() {
  const { view } = app;
  if (editor.isOpen) return "Editing the board";
  const where = view.mode === "analyse" ? "Analysis · " : view.current !== view.tip ? "Earlier position · " : "";
  return `${where}${view.status}`;
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

// A typed move that is refused comes back, to be mended.
function complain(text) {
  if (!$("#typed").value) $("#typed").value = app.sent;
  app.sent = "";
  app.typed = [];
  app.began = app.awaited = null;
  app.wanted = "";
  picker.refuse();
  draw();
  $("#error").textContent = text;
  $("#error").hidden = false;
}

function hush() { $("#error").hidden = true; }

// Moves.

function onPlay(move) {
  app.offer = null;
  if (!app.isAway) connection.send("play", { node: app.view.current, move });
}

// Plays the first typed move, unless the machine moves first or another move is not answered yet.
function playTyped() {
  const { view, typed } = app, player = view.position.player;
  const isMachines = view.mode === "play" && view.current === view.tip && !view.isOver && view.seats[player] !== "person";
  if (typed.length && picker.move === null && !isMachines) {
    app.sent = typed.shift();
    picker.play(app.sent);
  }
  drawControls();
}

function dropTyped() {
  app.typed = [];
  drawControls();
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
  if (picker.hasPick) picker.undo();
  else connection.send("takeback");
}

function go(way) {
  const node = step(app.view, app.nodes, way);
  if (node !== null) connection.send("go", { node });
}

function again(seats) {
  const { copy, rules } = app.view;
  begin("new", { rules: rules.fields, position: copy.position, seats, clock: copy.clock });
}

const actions = {
  "new": () => setup.open(),
  open: () => files.open(),
  save: () => connection.send("save"),
  edit: () => { editor.open(app.view); },
  "step-back": () => picker.undo(),
  takeback: () => connection.send("takeback"),
  hint: () => connection.send("hint"),
  bar: () => toggle("showsBar", "bar"),
  land: () => toggle("showsLand", "land"),
  "puzzles-open": () => puzzles.open(),
  review: () => {
    expectReview();
    connection.send("review");
  },
  mode: () => connection.send("mode", { mode: app.view.mode === "play" ? "analyse" : "play" }),
  resign: () => { if (confirm("Resign this game?")) connection.send("resign"); },
  "end-review": () => $("#review").click(),
  again: () => again(app.view.seats),
  rematch: () => again([...app.view.seats.slice(1), app.view.seats[0]]),
  help: () => $("#keys").showModal(),
  "keys-close": () => $("#keys").close(),
  first: () => go("start"), previous: () => go("back"), next: () => go("on"), last: () => go("end"),
};
for (const [id, action] of Object.entries(actions)) $(`#${id}`).addEventListener("click", action);

const keys = {
  ArrowLeft: () => go("back"), ArrowRight: () => go("on"), Home: () => go("start"), End: () => go("end"),
  Escape: () => (app.typed.length ? dropTyped() : picker.undo()), u: takeBack, h: actions.hint, e: actions.bar, t: actions.land, a: actions.mode, n: actions.new,
  r: () => $("#review").click(),
  b: () => picker.board.hits[picker.board.focus].focus(), "?": actions.help,
};
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (typing || document.querySelector("dialog[open]") || !app.view || editor.isOpen) return;
  // With Caps Lock on a letter comes as a capital.
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (!(key in keys) || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  keys[key]();
});

$("#error").addEventListener("click", hush);
$("#type-move").addEventListener("submit", (event) => {
  event.preventDefault();
  const move = $("#typed").value.trim();
  if (move) app.typed.push(move);
  $("#typed").value = "";
  playTyped();
});
$("#typed").addEventListener("keydown", (event) => { if (event.key === "Escape") dropTyped(); });

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
setInterval(tick, 100);
drawRules($("#pictures"));
draw();
