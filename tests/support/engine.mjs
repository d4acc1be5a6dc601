// Drives the page's engine for tests: a request in JSON a line on standard input, an answer a line.

import { createInterface } from "node:readline";

import * as rules from "../../train/ui/page/engine/rules.js";

const ANSWERS = { read, replay, random, notation };

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
