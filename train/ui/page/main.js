// The page: the game of this tab, and what is being picked on its board.

import { overSocket, inWorker, EngineClient } from "./engine_client.js";
import { Editor } from "./editor.js";
import { Files } from "./files.js";
import { PLAY } from "./game.js";
import { holdGame, isBlank, isName, keepGame, keptGame, newName, onOtherTab, playedBefore, unfinishedGames } from "./games.js";
import { COLOURS } from "./geometry.js";
import { $, readStore, writeStore } from "./html.js";
import { readLink } from "./link.js";
import { Machine } from "./machine.js";
import { drawMoves, step } from "./moves.js";
import * as panels from "./panels.js";
import { Picker, emptyPosition } from "./picker.js";
import { Puzzles } from "./puzzles.js";
import * as referee from "./referee.js";
import { goToNext, tryAgain } from "./mistakes.js";
import { drawReview, isReviewing, mistakeText, openReview } from "./review.js";
import { drawRules } from "./rules.js";
import { loadGame, poseGame, readCopy, writeCopy } from "./saving.js";
import { Setup } from "./setup.js";
import { aboutRules, activityOf, clocksOf, reviewOf, viewOf } from "./view.js";

const app = {
  game: null, name: "", view: null, machine: null,
  kept: "",  // the game as it was last kept, as text
  spoken: "", helped: "",  // what was said to screen readers last: of the game; of a hint or a mistake
  typed: [],  // moves that wait for their turn
  error: "", typedError: "",  // what went wrong, until something is done
  began: performance.now(),
  offer: null,
  showsBar: readStore("bar", false), showsLand: readStore("land", false),
};

const picker = new Picker($("#board"), {
  play: (move) => act((game) => game.play(move)), changed: onPick, refuse: complain, say, status: () => (app.view ? statusText() : ""),
  cell: (cell) => { if (editor.isOpen) editor.toggleStone(cell); return editor.isOpen || !app.view; },
  edge: (place) => { if (editor.isOpen) editor.toggleWall(place); },
});
const setup = new Setup({ start: begin, check: (fields) => choiceOf(referee.readRules(fields)) });
const puzzles = new Puzzles({
  open: (puzzle) => show(poseGame(puzzle, app.machine)), solve: () => act((game) => game.showSolution()),
});
const files = new Files({
  load: (text) => attempt(() => show(loadGame(text, app.machine, app.game.tree.rules))), say: complain,
  game: () => app.game, rename: (names) => act((game) => game.rename(names)), board: () => $("#board"),
});
const editor = new Editor({
  change: draw,
  start: (position, mode) => {
    const { seats } = app.game, keeps = seats.length === editor.preset.players;
    closeEditor();
    begin({ position, mode, seats: keeps ? seats : undefined });
  },
  close: closeEditor,
});

// Setting up.

async function setUp() {
  const choices = await (await fetch("choices.json")).json();
  const open = choices.engine === "socket"
    ? overSocket(`ws://${location.host}/socket`) : inWorker(new URL("./engine/worker.js", import.meta.url), choices);
  const client = new EngineClient(open, (isConnected) => { $("#lost").hidden = isConnected; });
  app.machine = new Machine(client, choices);
  const first = referee.readRules(choices.rules), presets = Object.values(referee.PRESETS).map(choiceOf);
  const isPreset = presets.some((preset) => preset.name === aboutRules(first).name && preset.name !== "custom");
  setup.setPresets(isPreset ? presets : [choiceOf(first), ...presets], choices.level);
  editor.setPresets(presets);  // A diagram names its rules.
  puzzles.set(choices.puzzles);
  openGame(location.hash.slice(1));
}

// Rules to choose, with the machine that plays them.
function choiceOf(rules) {
  const { machine } = app, { name, ratings } = machine.playerOf(rules);
  const levels = machine.choices.levels.map((level) => ({ ...level, rating: ratings[level.name] }));
  return { ...aboutRules(rules), machine: { name, levels, zero: machine.choices.zero, secondsOf: (simulations) => machine.secondsOf(simulations) } };
}

// Begins a new game of the fields of its copy.
function begin(copy) { attempt(() => show(readCopy(copy, app.machine))); }

// Each tab has the game of its address: a name of one that this browser keeps, or the game itself.
function openGame(fragment) {
  const own = history.state?.name === fragment ? history.state : null;
  const kept = isName(fragment) ? keptGame(fragment) ?? own : null;
  if (kept) {
    try {
      show(readCopy(kept.copy, app.machine), fragment);
      return;
    } catch {
      // A copy of another version.
    }
  }
  const { rules } = app.machine.choices;
  let link = null;
  try {
    link = isName(fragment) ? null : readLink(fragment);
    if (link) show(gameOfLink(link));
  } catch (error) {
    show(readCopy({ rules }, app.machine));
    complain(`the game of this address: ${error.message}`);
    return;
  }
  if (!link) show(readCopy({ rules }, app.machine), "", fragment !== "");
}

function gameOfLink({ moves, ...start }) {
  const game = readCopy({ ...start, mode: "analyse" }, app.machine);
  for (const move of moves) game.tip = game.tree.play(referee.read(game.tip.state, move));
  return game;
}

// Shows a game, under a new name if it has none.
function show(game, name = newName(), isLost = false) {
  app.game?.close();
  game.evaluates = wantsEvaluation();
  game.asksMachine = false;
  Object.assign(app, { game, name: name || newName(), view: null, typed: [], began: null, kept: "" });
  history.replaceState(null, "", `#${app.name}`);
  holdGame(app.name, () => {
    app.game.asksMachine = true;
    app.game.update();
  });
  game.open(onGame);
  onGame();
  offerGames(isLost);
}

// Takes what another tab has made of the game of this one.
onOtherTab((name, copy) => {
  const text = textOf(copy);
  if (name !== app.name || text === app.kept) return;
  const { asksMachine } = app.game;
  app.game.close();
  app.game = readCopy(copy, app.machine);
  Object.assign(app.game, { asksMachine, evaluates: wantsEvaluation() });
  app.kept = text;
  app.game.open(onGame);
  onGame();
});

async function offerGames(isLost) {
  const { game } = app, blank = isBlank(writeCopy(game));
  app.offer = null;
  const games = blank ? await unfinishedGames() : [];
  if (app.game !== game || isBlank(writeCopy(game)) !== blank) return;
  app.offer = { isLost, games, isFirst: blank && !playedBefore(app.name) };
  draw();
}

// The game has changed.
function onGame() {
  const before = app.view, view = viewOf(app.game, app.name);
  const isSame = before?.game === view.game && before.current === view.current;
  picker.show(view, isSame);
  app.view = view;
  if (view.nodes.size > 1) app.offer = null;
  keep();
  if (!isSame) hush();
  draw();
  announce(before);
  playTyped();
}

// Keeps the game, unless it is as it was. Where the browser keeps nothing, the tab does.
function keep(isLeaving = false) {
  const { game, name, view } = app, copy = writeCopy(game), text = textOf(copy);
  if (text === app.kept && !isLeaving) return;
  app.kept = text;
  const about = { rules: view.rules.name, plies: game.tip.position.ply, isFinished: view.isFinished };
  if (!keepGame(name, copy, about)) history.replaceState({ name, copy }, "", `#${name}`);
}

// What of a copy other tabs have to know at once.
function textOf(copy) { return JSON.stringify({ ...copy, left: null, evaluates: null }); }

// Does what somebody asks of the game, or says why it cannot be done.
function act(action) {
  hush();
  attempt(() => action(app.game));
}

function attempt(action) {
  try {
    action();
  } catch (error) {
    complain(error.message);
  }
}

function wantsEvaluation() { return app.showsBar || app.showsLand; }

// Drawing.

function draw() {
  const { view } = app;
  tick();
  if (!view) {
    picker.draw({ position: emptyPosition(7), active: false });
    return;
  }
  const ideas = editor.isOpen ? null : panels.hintsOf(view);
  if (editor.isOpen) {
    picker.draw({ position: editor.scene(), active: false, allEdges: true });
  } else {
    picker.draw({ ideas, hinted: panels.hintedCells(view), owners: app.showsLand && !view.position.isOver ? view.evaluation?.owners : null });
  }
  panels.drawPlayers($("#players"), view);
  panels.drawEvaluation($("#evaluation"), view, app.showsBar && !editor.isOpen && view.puzzle?.state !== "open");
  panels.drawIdeas($("#ideas"), view, ideas, { play: (move) => picker.play(move), preview: (idea) => picker.board.preview(idea) });
  panels.drawOffer($("#offer"), app.offer, { open: openGame, learn: () => $("#keys").showModal() });
  puzzles.draw(view);
  drawReview(view);
  $("#end").hidden = !view.end || view.mode !== PLAY;
  if (view.end) panels.drawEnd($("#end-told"), view);
  drawMoves($("#moves"), view, {
    go: (node) => act((game) => game.go(node)), remove: (node) => act((game) => game.remove(node)),
    showsChances: app.showsBar && view.puzzle?.state !== "open",
  });
  drawControls();
  if (editor.isOpen) editor.draw();
}

function drawControls() {
  const { view } = app, playing = view.mode === PLAY, posed = view.puzzle?.state === "open";
  $("#rules").textContent = view.rules.text;
  $("#rules").title = `${view.rules.about} Commands and files call these rules ${view.rules.name}.`;
  $("#status").textContent = statusText();
  $("#goal").textContent = view.goal;
  $("#goal").hidden = !view.goal || editor.isOpen;
  $("#advice").textContent = adviceText();
  $("#advice").hidden = app.error !== "";
  $("#error").textContent = app.error;
  $("#error").hidden = !app.error;
  $("#note").textContent = noteText();
  $("#note").hidden = !$("#note").textContent;
  $("#step-back").disabled = !picker.hasPick;
  $("#takeback").disabled = view.nodes.size < 2 || posed;
  $("#hint").disabled = view.position.isOver || posed;
  $("#hint").textContent = panels.hintButton(view);
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
  const waits = app.typed.length ? `Waits for your turn: ${app.typed.join(", ")} (Escape drops it)` : "";
  $("#typed-told").textContent = app.typedError || waits;
  $("#typed").setAttribute("aria-invalid", app.typedError !== "");
}

// What takes time, and how far it is.
function tick() {
  const { game, view } = app;
  const setUp = { text: "Setting up the game", seconds: (performance.now() - app.began) / 1000, share: null };
  for (const part of document.querySelectorAll("header nav, #game-panel")) part.inert = !view;
  panels.drawActivity($("#activity"), game ? activityOf(game) : setUp);
  if (!game) return;
  panels.drawActivity($("#review-goes"), isReviewing(game) ? reviewOf(game) : null);
  if (game.clocks) panels.drawClocks($("#players"), clocksOf(game));
}

function adviceText() {
  const { view } = app;
  if (editor.isOpen) return "";
  const hint = picker.hasPick ? "" : panels.hintText(view);
  if (hint || view.mayPlay) return hint || picker.advice;
  return view.mode === PLAY && view.current !== view.tip ? "Analyse tries other moves here; the last move goes on" : "";
}

function noteText() {
  const { view } = app, { report } = view.nodes.get(view.current);
  const missing = app.showsLand && report && !report.owners && !view.isOver;
  return view.error || (missing ? "No territory estimate: the machine for these rules has no head for it." : "");
}

function statusText() {
  const { view } = app;
  if (editor.isOpen) return "Editing the board";
  const where = view.mode !== PLAY ? "Analysis · " : view.current !== view.tip ? "Earlier position · " : "";
  return `${where}${view.status}`;
}

// What is said to screen readers, and what went wrong.

function say(text) { $("#says").textContent = text; }

function announce(before) {
  const { view } = app, node = view.nodes.get(view.current);
  const played = node.parent ? `${COLOURS[node.mover]} ${node.text}. ` : "", words = `${played}${statusText()}`;
  if (words !== app.spoken && (!before || before.current !== view.current || before.status !== view.status)) say(words);
  app.spoken = words;
  const helps = panels.hintText(view) || (view.review ? mistakeText(view.mistakes) : "");
  if (helps && helps !== app.helped) say(helps);
  app.helped = helps;
}

function complain(text) {
  app.typed = [];
  app.error = `${text[0].toUpperCase()}${text.slice(1)}`;
  draw();
  $("#error").scrollIntoView({ block: "nearest" });
}

function hush() {
  app.error = "";
  app.typedError = "";
}

function onPick() {
  hush();
  draw();
}

// Moves.

// Plays the first typed move, unless the machine moves first. One that is refused comes back, to be mended.
function playTyped() {
  const { game, typed, view } = app;
  if (typed.length && !(game.isMachinesTurn && view.current === view.tip)) {
    const move = typed.shift();
    try {
      game.play(move);
    } catch (error) {
      if (!$("#typed").value) $("#typed").value = move;
      app.typed = [];
      app.typedError = error.message;
    }
  }
  drawControls();
  if (app.typedError) $("#typed-told").scrollIntoView({ block: "nearest" });
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
  app.game.showEvaluation(wantsEvaluation());
}

function takeBack() {
  if (picker.hasPick) picker.undo();
  else actions.takeback();
}

// Reviews the game, and goes to its first mistake.
async function askReview() {
  const { game } = app;
  try {
    await game.askReview();
  } catch (error) {
    complain(error.message);
  }
  if (app.game !== game || !app.view.mistakes.total) return;
  act(goToNext);
  for (const part of ["#board", "#review-box"]) $(part).scrollIntoView({ block: "nearest" });
}

function openResign() {
  const player = app.game.resigner;
  if (player === null) return;
  $("#resign-about").textContent = `${COLOURS[player]} loses. The game stays on the board, to be reviewed or taken back.`;
  $("#resign-dialog").showModal();
}

function go(way) {
  const node = step(app.view, way);
  if (node !== null) act((game) => game.go(node));
}

function again(seats) {
  const { tree, clocks } = app.game;
  begin({ rules: tree.rules, position: tree.diagram, seats, clock: clocks && clocks.settings });
}

const actions = {
  "new": () => setup.open(),
  open: () => files.open(),
  save: () => files.openSave(),
  edit: () => {
    hush();
    editor.open(app.view);
  },
  "step-back": () => picker.undo(),
  takeback: () => act((game) => game.takeBack()),
  hint: () => {
    picker.drop();
    act((game) => game.askHint());
  },
  bar: () => toggle("showsBar", "bar"),
  land: () => toggle("showsLand", "land"),
  "puzzles-open": () => puzzles.open(),
  review: askReview,
  "next-mistake": () => act(goToNext),
  "try-again": () => act(tryAgain),
  "review-open": () => openReview(app.view),
  mode: () => act((game) => game.setMode(game.mode === PLAY ? "analyse" : PLAY)),
  resign: openResign,
  "resign-yes": () => {
    $("#resign-dialog").close();
    act((game) => game.resign());
  },
  "resign-no": () => $("#resign-dialog").close(),
  "end-review": () => $("#review").click(),
  again: () => again(app.game.seats),
  rematch: () => again([...app.game.seats.slice(1), app.game.seats[0]]),
  help: () => $("#keys").showModal(),
  "keys-close": () => $("#keys").close(),
  first: () => go("start"), previous: () => go("back"), next: () => go("on"), last: () => go("end"),
};
for (const [id, action] of Object.entries(actions)) $(`#${id}`).addEventListener("click", action);

const keys = {
  ArrowLeft: () => go("back"), ArrowRight: () => go("on"), Home: () => go("start"), End: () => go("end"),
  Escape: () => (app.typed.length ? dropTyped() : picker.undo()), u: takeBack, h: actions.hint, e: actions.bar, t: actions.land, a: actions.mode, n: actions.new,
  r: () => $("#review").click(),
  m: () => $("#next-mistake").click(),
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

$("#error").addEventListener("click", onPick);
$("#type-move").addEventListener("submit", (event) => {
  event.preventDefault();
  const move = $("#typed").value.trim();
  hush();
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
  const fragment = location.hash.slice(1);
  if (app.game && fragment && fragment !== app.name) openGame(fragment);
});
addEventListener("pagehide", () => { if (app.game) keep(true); });  // The time that is left, too.
setInterval(tick, 100);
drawRules($("#pictures"));
draw();
setUp().catch((error) => {
  console.error(error);
  $("#error").textContent = `The page could not be set up: ${error.message}`;
  $("#error").hidden = false;
});
