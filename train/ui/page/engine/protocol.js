// Answers the requests of docs/engine.md: sessions of games, each with a tree of its own.
//
// API: class Protocol(settings, load), with `answer(request, tell)`. `settings` are those of the page's folder:
//
//     machines     [{ name, rules: [a preset's name or fields], model: a path without ending }], the first that fits plays
//     other        the player of all other rules: `heuristic-search:wjx`, `wjx`, `ethen` or `greedy`
//     simulations  of an answer, where neither session nor request says
//     keepsTrees   whether a session goes on from the subtree of the moves played
//
// `load(path)` gives { card, bytes } of a model. `tell` takes progress: { type: "progress", bgsId, stage, done, total }.

import * as rulebook from "./rules.js";
import { makeNetwork, readModel } from "./network.js";
import { makeGreedy, makeHeuristic } from "./heuristics.js";
import { Search, drawPlace } from "./search.js";

const RESPONSES = {
  start_game_session: "game_session_started", evaluate_position: "evaluate_response", apply_move: "move_applied",
  stop_search: "search_stopped", end_game_session: "game_session_ended",
};
const MAX_NAME = 200;
const NODES = 4096;
const SLICE_MS = 12;
const PROGRESS_MS = 100;
const EDGE = 1e-6;

export class Protocol {
  constructor(settings, load, random = Math.random) {
    this.settings = { machines: [], other: "heuristic-search:wjx", simulations: 64, keepsTrees: true, ...settings };
    this.load = load;
    this.random = random;
    this.sessions = new Map();
    this.turns = new Map();  // requests of a session are answered in their order
    this.asked = new Set();  // searches that were asked for, begun or not
    this.models = new Map();
    this.secondsOf = 0;  // a simulation, by the searches so far
  }

  /** The response to a request, by a promise. */
  async answer(request, tell = () => {}) {
    const { type, bgsId } = request ?? {};
    if (!Object.hasOwn(RESPONSES, type ?? "")) return failed("error", bgsId, `type: not one of ${Object.keys(RESPONSES).join(", ")}`);
    if (typeof bgsId !== "string" || !bgsId || bgsId.length > MAX_NAME) return failed(RESPONSES[type], null, `bgsId: not text of 1 to ${MAX_NAME} characters`);
    if (type === "stop_search") {
      for (const search of this.asked) if (search.bgsId === bgsId) search.isStopped = true;
      return { type: RESPONSES[type], bgsId, success: true, error: "" };
    }
    const asked = { bgsId, isStopped: false };
    if (type === "evaluate_position") this.asked.add(asked);
    const work = (this.turns.get(bgsId) ?? Promise.resolve()).then(() => this[type](request, tell, asked));
    const turn = work.catch(() => {});
    this.turns.set(bgsId, turn);
    try {
      return { type: RESPONSES[type], bgsId, ...await work, success: true, error: "" };
    } catch (error) {
      const standing = this.sessions.has(bgsId) ? { ply: this.sessions.get(bgsId).position.ply } : {};
      return { ...standing, ...failed(RESPONSES[type], bgsId, error.message) };
    } finally {
      this.asked.delete(asked);
      if (this.turns.get(bgsId) === turn) this.turns.delete(bgsId);
    }
  }

  async start_game_session({ bgsId, rules: named, position: diagram, moves = [], simulations, seconds }, tell) {
    if (this.sessions.has(bgsId)) throw new Error(`session '${bgsId}' is open already; end it first, or choose a name`);
    checkBudget(simulations, seconds);
    const { variant, position } = diagram === undefined ? begin(named ?? "wallzero-4stone") : await readDiagram(diagram, named);
    const session = { variant, position, simulations, seconds, slots: [], rootPly: 0, search: null };
    for (const move of moves) {
      try {
        applyMove(session, move);
      } catch (error) {
        throw new Error(`ply ${session.position.ply + 1}: ${error.message}`);
      }
    }
    session.player = await this.playerOf(variant, (progress) => tell({ type: "progress", bgsId, ...progress }));
    this.sessions.set(bgsId, session);
    return { rules: rulebook.nameOf(variant.rules), ...standing(session) };
  }

  async apply_move({ bgsId, move, expectedPly }) {
    const session = this.sessionOf(bgsId, expectedPly);
    applyMove(session, move);
    return standing(session);
  }

  async end_game_session({ bgsId }) {
    this.sessionOf(bgsId);
    this.sessions.delete(bgsId);
    return {};
  }

  async evaluate_position(request, tell, asked) {
    const { bgsId, expectedPly, temperature = 0, details = false, progress = false } = request, session = this.sessionOf(bgsId, expectedPly);
    checkBudget(request.simulations, request.seconds);
    if (!(temperature >= 0 && temperature <= 100)) throw new Error("temperature: not from 0 to 100");
    if (session.position.over) return finished(session, details);
    const budget = [request, session, this.settings].find((each) => each.simulations !== undefined || each.seconds !== undefined);
    const search = this.prepare(session, budget);
    await this.run(search, budget.seconds, asked, (done) => {
      if (progress) tell({ type: "progress", bgsId, stage: "searching", done, total: search.dues.length });
    });
    const found = search.result();
    if (session.player.isChoice) found.place = pick(search.root.logits, this.random());
    else if (temperature > 0) found.place = drawPlace(found.policy, temperature, this.random());
    return evaluation(session, search, found, details);
  }

  /** The search of a session at its position, planned, on the tree that it has so far. */
  prepare(session, { simulations, seconds }) {
    const { variant, position, player } = session;
    session.search ??= new Search(variant, player.evaluator, player.options);
    const wanted = session.player.isChoice ? 0 : simulations ?? Math.max(1, Math.min(Math.floor(seconds / (this.secondsOf || 0.01)), NODES / 2));
    session.search.begin(position, this.settings.keepsTrees ? session.slots.slice(session.rootPly) : null, NODES - wanted);
    session.rootPly = session.slots.length;
    session.search.plan(wanted);
    return session.search;
  }

  /** Search in slices, between which messages come in. */
  async run(search, seconds, asked, onProgress) {
    const began = performance.now();
    let told = began, isDone = false;
    while (!isDone) {
      if (asked.isStopped) throw new Error("the search was stopped");
      const slice = performance.now();
      while (!isDone && performance.now() - slice < SLICE_MS) {
        isDone = !search.step() || (seconds !== undefined && performance.now() - began > seconds * 1000);
      }
      if (!isDone && performance.now() - told > PROGRESS_MS) {
        told = performance.now();
        onProgress(search.done);
      }
      if (!isDone) await tick();
    }
    if (search.done) this.secondsOf = (performance.now() - began) / 1000 / search.done;
  }

  sessionOf(bgsId, expectedPly) {
    const session = this.sessions.get(bgsId);
    if (!session) throw new Error(`session '${bgsId}' is not open; start it first`);
    const { ply } = session.position;
    if (expectedPly !== undefined && expectedPly !== null && expectedPly !== ply) throw new Error(`expectedPly: ${expectedPly}, but the session stands at ${ply}`);
    return session;
  }

  /** The evaluator of a rule set, with the options of its searches. */
  async playerOf(variant, tell) {
    const { machines, other } = this.settings, name = rulebook.nameOf(variant.rules);
    const fits = (each) => (typeof each === "string" ? each === name : rulebook.sameRules(rulebook.readRules(each), variant.rules));
    const machine = machines.find(({ rules }) => rules.some(fits));
    if (machine) {
      if (!this.models.has(machine.model)) {
        tell({ stage: "loading", done: 0, total: 1 });
        const { card, bytes } = await this.load(machine.model);
        this.models.set(machine.model, readModel(card, bytes));
      }
      const model = this.models.get(machine.model), network = makeNetwork(model, variant);
      return { evaluator: network, options: model.card.search, calibration: model.card.calibration, look: network.look };
    }
    if (other === "greedy") return { evaluator: makeGreedy(variant), isChoice: true };
    const heuristic = makeHeuristic(variant, other.replace("heuristic-search:", ""));
    return { evaluator: heuristic, isChoice: !other.includes(":") };
  }
}

function failed(type, bgsId, error) { return { type, bgsId: bgsId ?? null, success: false, error }; }

function begin(named) {
  const variant = rulebook.makeVariant(rulebook.readRules(named));
  return { variant, position: rulebook.initialPosition(variant) };
}

/** A position that the page's own reader of diagrams gives. */
async function readDiagram(text, named) {
  if (named !== undefined) throw new Error("position: holds the rules; leave `rules` out");
  const referee = await import("../referee.js");
  return referee.readDiagram(text).state;
}

function checkBudget(simulations, seconds) {
  if (simulations !== undefined && seconds !== undefined) throw new Error("budget: say simulations or seconds, not both");
  if (simulations !== undefined && !(Number.isInteger(simulations) && simulations >= 0 && simulations < NODES)) {
    throw new Error(`budget: ${simulations} simulations are not from 0 to ${NODES - 1}, the room of a tree`);
  }
  if (seconds !== undefined && !(seconds > 0)) throw new Error("seconds: not above 0");
}

function applyMove(session, move) {
  const { variant, position } = session, action = rulebook.parseAction(move, variant.grid), letter = /^\s*([a-z])\s+\S/i.exec(move)?.[1];
  const led = letter === undefined ? position.player : rulebook.LETTERS.indexOf(letter.toUpperCase());
  if (led !== position.player && !position.over) throw new Error(`move: ${rulebook.COLOURS[position.player]} is to move, not ${rulebook.COLOURS[led]}`);
  const slot = rulebook.slotOfAction(variant, position, action);
  session.position = rulebook.play(variant, position, action);
  session.slots.push(slot);
}

function standing({ variant, position }) { return { ply: position.ply, result: rulebook.result(variant, position)?.rewards ?? null }; }

/** One of the slots with the largest logits, each as likely as the others. */
function pick(logits, uniform) {
  const most = logits.reduce((best, each) => Math.max(best, each), -Infinity), best = [...logits.keys()].filter((i) => logits[i] === most);
  return best[Math.floor(uniform * best.length)];
}

/** Numbers of players from the mover on, by player. */
function byPlayer(shares, mover) { return Array.from(shares, (_, player) => shares[(player - mover + shares.length) % shares.length]); }

/** The chance to win of an expected reward, with log-odds times a factor. */
function winChance(value, players, factor = 1) {
  const plain = Math.min(1, Math.max(0, ((players - 1) * value + 1) / players));
  if (players !== 2 || factor === 1 || plain === 0 || plain === 1) return plain;
  const inner = Math.min(1 - EDGE, Math.max(EDGE, plain));
  return 1 / (1 + Math.exp(-factor * Math.log(inner / (1 - inner))));
}

function evaluation({ variant, position, player }, search, found, details) {
  const { players, grid } = variant, mover = position.player, { calibration = {} } = player, { root } = search;
  const name = (at, slot) => rulebook.formatAction(rulebook.actionOfSlot(variant, at, slot), grid);
  const chance = (value, isSearched = true) => winChance(value, players, isSearched ? calibration.search : calibration.network);
  const values = byPlayer(found.values, mover).map((value) => Math.min(1, Math.max(-1, value))), isSearched = found.visits !== 1;
  const response = {
    ply: position.ply, bestMove: name(position, root.slots[found.place]), evaluation: players > 2 ? values : values[0],
    winChance: chance(found.value, isSearched), simulations: search.done, visits: found.visits,
  };
  if (!details) return response;
  const chances = byPlayer(found.bestValues, mover).map((value) => chance(value, isSearched));
  const others = chances.reduce((sum, each) => sum + each, -chances[mover]);
  const sign = players === 2 && mover === 1 ? -1 : 1, looked = player.look?.(position);
  const owners = looked?.owners?.map((shares) => [...byPlayer(shares.subarray(0, players), mover), shares[players]]) ?? null;
  const candidates = found.candidates.map(({ place, visits, value, line }) => ({
    move: name(position, root.slots[place]), prior: root.prior[place], policy: found.policy[place], visits, value: sign * value,
    winChance: chance(value), line: line.map((ply) => name(ply.position, ply.slot)),
  }));
  const isFirst = ({ move }) => Number(move === response.bestMove);
  candidates.sort((a, b) => isFirst(b) - isFirst(a) || b.visits - a.visits || sign * (b.value - a.value));
  const margin = looked?.margin != null && players === 2 ? (mover === 0 ? looked.margin : -looked.margin) : owners && leadOf(owners, players);
  return {
    ...response, chances: chances.map((each, side) => (side === mover ? each : each * (1 - chances[mover]) / Math.max(others, 1e-9))), candidates, owners, margin,
  };
}

/** Cells by which the first player leads the best of the others. */
function leadOf(owners, players) {
  const cells = Array.from({ length: players }, (_, player) => owners.reduce((sum, shares) => sum + shares[player], 0));
  return cells[0] - Math.max(...cells.slice(1));
}

function finished({ variant, position }, details) {
  const { players } = variant, { rewards, owners } = rulebook.result(variant, position), shares = owners.map((owner) => Array.from({ length: players + 1 }, (_, who) => Number(who === (owner < 0 ? players : owner))));
  const chances = rewards.map((each) => winChance(each, players));
  const response = { ply: position.ply, bestMove: "", evaluation: players > 2 ? rewards : rewards[0], winChance: chances[position.player], simulations: 0, visits: 0 };
  return details ? { ...response, chances, candidates: [], owners: shares, margin: leadOf(shares, players) } : response;
}

/** Let waiting messages come in. */
const tick = globalThis.setImmediate ? () => new Promise((resolve) => { setImmediate(resolve); }) : makeTick();

function makeTick() {
  const { port1, port2 } = new MessageChannel(), waiting = [];
  port1.onmessage = () => waiting.shift()();
  return () => new Promise((resolve) => {
    waiting.push(resolve);
    port2.postMessage(null);
  });
}
