// Drives the page's engine for tests: a request in JSON a line on standard input, an answer a line.

import { createInterface } from "node:readline";

import { readFileSync } from "node:fs";

import { makeGreedy, makeHeuristic } from "../../train/ui/page/engine/heuristics.js";
import { makeNetwork, readModel } from "../../train/ui/page/engine/network.js";
import { channels, makeObserver } from "../../train/ui/page/engine/planes.js";
import { Protocol } from "../../train/ui/page/engine/protocol.js";
import * as rules from "../../train/ui/page/engine/rules.js";
import { Search } from "../../train/ui/page/engine/search.js";

const ANSWERS = { read, replay, random, notation, planes, look, search, serve, time };

function read({ given }) { return { rules: rules.readRules(given), name: rules.nameOf(rules.readRules(given)) }; }

// Plays games by their public actions, which are checked.
function replay({ fields, room, games }) {
  const variant = rules.makeVariant(rules.readRules(fields), room);
  return shown(variant, games, games.map((actions) => (ply) => actions[ply]));
}

// Plays random games to their ends.
function random({ fields, room, seed, count }) {
  const variant = rules.makeVariant(rules.readRules(fields), room);
  const draw = generator(seed);
  const games = Array.from({ length: count }, () => []);
  return shown(variant, games, games.map((actions) => (ply, legal) => {
    if (legal.length) actions.push(legal[Math.floor(draw() * legal.length)]);
    return actions[ply];
  }));
}

// The actions, and for each game the rows of `row` as base64.
function shown(variant, games, choosers) {
  const played = choosers.map((choose) => {
    let position = rules.initialPosition(variant);
    const rows = [];
    for (let ply = 0; ; ply++) {
      const legal = rules.legalActions(variant, position);
      rows.push(Buffer.from(row(variant, position, legal)));
      const action = choose(ply, legal);
      if (action === undefined) break;
      position = rules.play(variant, position, action);
    }
    return { rows: Buffer.concat(rows).toString("base64"), result: rules.result(variant, position) };
  });
  return { actions: games, results: played.map((game) => game.result), rows: played.map((game) => game.rows) };
}

// All that is known of a position, as int16.
function row(variant, position, legal) {
  const found = rules.analyse(variant, position);
  const numbers = [
    position.player, position.ply, Number(position.over), ...position.stones, ...position.horizontal, ...position.vertical,
    ...position.wallsLeft, ...position.trail, ...found.owners, ...found.territory.subarray(0, variant.players),
    ...found.largest.subarray(0, variant.players),
  ];
  for (let player = 0; player < variant.players; player++) numbers.push(...mask(rules.reach(variant, position, player), variant.cells));
  numbers.push(...mask(legal, variant.cells * 53));
  const back = legal.map((action) => rules.actionOfSlot(variant, position, rules.slotOfAction(variant, position, action)));
  if (String(back) !== String(legal)) throw new Error("slots and actions disagree");
  return new Int16Array(numbers).buffer;
}

// The places as bits, sixteen a number.
function mask(places, length) {
  const all = new Int16Array(Math.ceil(length / 16));
  for (const place of places) all[place >> 4] |= 1 << (place & 15);
  return all;
}

function notation({ texts, grid, actions }) {
  return {
    read: texts.map((text) => attempt(() => rules.parseAction(text, grid))),
    written: actions.map((action) => attempt(() => rules.formatAction(action, grid))),
  };
}

function attempt(work) {
  try { return work(); } catch (error) { return error.message; }
}

// The positions of a game, the first one before its first ply.
function positionsOf(variant, actions) {
  const positions = [rules.initialPosition(variant)];
  for (const action of actions) positions.push(rules.play(variant, positions.at(-1), action));
  return positions;
}

// The planes of a game's positions as bits, base64.
function planes({ fields, games, planes: named, hasPlayable }) {
  const variant = rules.makeVariant(rules.readRules(fields));
  const table = channels(named, variant.players, hasPlayable), observe = makeObserver(variant, table);
  const into = new Float32Array(variant.cells * table.length);
  const rows = games.map((actions) => Buffer.concat(positionsOf(variant, actions).map((position) => {
    observe(position, 0, into);
    return Buffer.from(Uint8Array.from(into));
  })).toString("base64"));
  return { channels: table.length, rows };
}

const models = new Map();

function modelAt(path) {
  if (!models.has(path)) {
    const { card, bytes } = modelFiles(path);
    models.set(path, readModel(card, bytes));
  }
  return models.get(path);
}

// The evaluator that a name means: a path of a model, `greedy`, a heuristic's formula, or `table`.
function evaluatorOf(name, variant) {
  if (name === "greedy") return makeGreedy(variant);
  if (name === "table") return makeTable(variant);
  return name.includes("/") ? makeNetwork(modelAt(name), variant) : makeHeuristic(variant, name);
}

// Logits of the legal slots and values of the positions of games that are not over; with a network its other heads too.
function look({ fields, games, evaluator: named }) {
  const variant = rules.makeVariant(rules.readRules(fields)), evaluator = evaluatorOf(named, variant), into = new Int16Array(256);
  return games.map((actions) => positionsOf(variant, actions).filter((position) => !position.over).map((position) => {
    const count = rules.legalSlots(variant, position, into), { logits, values } = evaluator.evaluate(position, into, count);
    const heads = evaluator.look?.(position);
    return {
      slots: [...into.subarray(0, count)], logits: [...logits], values: [...values],
      owners: heads?.owners?.map((shares) => [...shares]) ?? null, margin: heads?.margin ?? null,
    };
  }));
}

// Visits of the root's slots and the choice of searches of positions; `path` plays slots on and searches again.
function search({ fields, games, evaluator: named, simulations, options }) {
  const variant = rules.makeVariant(rules.readRules(fields)), evaluator = evaluatorOf(named, variant);
  return games.map(({ actions, again = [] }) => {
    let position = positionsOf(variant, actions).at(-1);
    const own = new Search(variant, evaluator, options), found = [];
    for (const path of [null, ...again]) {
      for (const slot of path ?? []) position = rules.play(variant, position, rules.actionOfSlot(variant, position, slot));
      own.begin(position, path);
      own.plan(simulations);
      while (own.step());
      const result = own.result(), visits = Array(variant.slots).fill(0);
      own.root.children.forEach((child, i) => { visits[own.root.slots[i]] = child?.visits ?? 0; });
      found.push({ visits, slot: own.root.slots[result.place], value: result.value, nodes: own.nodes });
    }
    return found;
  });
}

// Milliseconds of searches of the first position, one after another.
function time({ fields, evaluator: named, simulations, options, count }) {
  const variant = rules.makeVariant(rules.readRules(fields)), evaluator = evaluatorOf(named, variant);
  return Array.from({ length: count }, () => {
    const began = performance.now(), own = new Search(variant, evaluator, options);
    own.begin(rules.initialPosition(variant));
    own.plan(simulations);
    while (own.step());
    return performance.now() - began;
  });
}

// Exact numbers in place of a network: those of a hash of the board.
function makeTable(variant) {
  const mix = (x) => {
    x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
    x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
    return (x ^ (x >>> 16)) >>> 0;
  };
  const constant = (place) => mix(Math.imul(place + 1, 0x9e3779b9));
  function hash(position) {
    let sum = position.player + 1;
    position.stones.forEach((cell, stone) => { sum = (sum + constant(1000 * (stone + 1) + cell)) | 0; });
    [position.horizontal, position.vertical].forEach((builders, orientation) => builders.forEach((builder, cell) => {
      if (builder >= 0) sum = (sum + constant(100000 + 1000 * (2 * builder + orientation) + cell)) | 0;
    }));
    return sum;
  }
  return {
    evaluate(position, slots, count) {
      const seed = hash(position), { players } = variant;
      const logits = Float32Array.from(slots.subarray(0, count), (slot) => (mix(seed ^ constant(slot)) >>> 20) / 1024);
      const values = Float32Array.from({ length: players }, (_, place) => (mix(seed ^ constant(5000 + place)) >>> 17) / 16384 - 1);
      if (players === 2) values[1] = -values[0];
      return { logits, values };
    },
  };
}

// Answers of the protocol to requests sent at once, but for those behind `wait` milliseconds, and its progress.
async function serve({ settings, requests, seed = 1 }) {
  const protocol = new Protocol(settings, (path) => modelFiles(path), generator(seed)), messages = [];
  const sent = [];
  for (const { wait, ...request } of requests) {
    if (wait === "all") await Promise.all(sent);
    else if (wait) await new Promise((resolve) => { setTimeout(resolve, wait); });
    sent.push(protocol.answer(request, (message) => messages.push(message)).then((answer) => messages.push(answer)));
  }
  await Promise.all(sent);
  return { messages };
}

function modelFiles(path) {
  const bytes = readFileSync(`${path}.bin`);
  return { card: JSON.parse(readFileSync(`${path}.json`)), bytes: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) };
}

// Random numbers from 0 to below 1 (mulberry32).
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try { answer = await ANSWERS[request.kind](request); } catch (error) { answer = { error: error.message, stack: error.stack }; }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
