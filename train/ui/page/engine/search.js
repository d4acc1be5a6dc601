// Gumbel search of one position without noise: sequential halving at the root, matched visits below, as in train/search.
//
// API: class Search; consideredActions(options, simulations), halvingDues(considered, simulations), drawPlace(policy,
// temperature, uniform).
//
// Numbers are rounded to float32 where train/search compares them, so that both visit the same nodes.

import { clonePosition, legalSlots, playSlot, writeRewards } from "./rules.js";
import { softmax } from "./network.js";

const { fround } = Math;
const CONSIDERED = [[4, 2], [16, 4], [32, 8], [Infinity, 16]];
const NO_CHANCE = -1e9;
const MOST_LINES = 24;
const LINE_PLIES = 8;
/** Options of `SearchConfig` that a player reads. */
export const DEFAULTS = { value_scale: 0.1, visit_offset: 50, rescale_values: true, least_spread: 1e-8, considered: 0 };

/** Number of actions that a player of so many simulations considers at the root. */
export function consideredActions(options, simulations) {
  return options.considered || CONSIDERED.find(([most]) => simulations <= most)[1];
}

/** For each simulation, the visits that a slot of the root has had when it is due. */
export function halvingDues(considered, simulations) {
  if (considered <= 1) return Array.from({ length: simulations }, (_, visits) => visits);
  const halvings = Math.ceil(Math.log2(considered)), dues = [];
  for (let left = considered, had = 0; dues.length < simulations; left = Math.max(2, left >> 1)) {
    const rounds = Math.max(1, Math.floor(simulations / (halvings * left)));
    for (let round = 0; round < rounds; round++, had++) dues.push(...Array(left).fill(had));
  }
  return dues.slice(0, simulations);
}

/**
 * A node; reward, discount and Q-value are those of the step that leads to it, for the side that makes it.
 * @typedef {object} Node
 * @property {import("./rules.js").Position} position
 * @property {Int16Array} slots legal ones
 * @property {Float32Array} logits of the slots
 * @property {Float32Array} prior their chances
 * @property {(Node | null)[]} children
 * @property {Node | null} parent
 * @property {number} visits
 * @property {number} raw value as evaluated, for the side to move
 * @property {number} value mean of all visits
 * @property {number} reward
 * @property {number} discount 0 where the step ends the game
 * @property {number} qvalue
 */

const slots = new Int16Array(256), completed = new Float32Array(256), expected = new Float32Array(256);

/** The tree of one game, which is kept from move to move. */
export class Search {
  /**
   * @param {import("./rules.js").Variant} variant
   * @param {{evaluate: Function}} evaluator a network, a heuristic, or a table
   * @param {Partial<typeof DEFAULTS>} options
   */
  constructor(variant, evaluator, options = {}) {
    this.variant = variant;
    this.evaluator = evaluator;
    this.options = { ...DEFAULTS, ...options };
    this.rewards = new Float32Array(variant.players);
    this.nodes = 0;
  }

  /** Stand at a position whose game goes on, at the end of a path of slots from where the search stood, if there is one. */
  begin(position, path = null, room = Infinity) {
    let node = path && this.root;
    for (const slot of path ?? []) node = node && node.children[node.slots.indexOf(slot)];
    // With more players all others play against the one at the root: a tree is that player's.
    const isOwn = node && (this.variant.players === 2 || position.player === this.root.position.player);
    const isKept = Boolean(isOwn && node.slots.length && (this.nodes = size(node)) <= room);
    this.root = isKept ? node : this.makeNode(position, null);
    if (!isKept) this.nodes = 1;
    Object.assign(this.root, { parent: null, reward: 0, discount: 0, qvalue: 0 });
    const count = legalSlots(this.variant, position, slots), { logits, values } = this.evaluator.evaluate(position, slots, count);
    const largest = logits.reduce((most, each) => Math.max(most, each), -Infinity);
    this.scores = values;
    this.root.raw = fround(values[0]);
    if (!isKept) this.root.value = this.root.raw;
    this.setPrior(this.root, logits.map((each) => each - largest));
    this.before = Int32Array.from(this.root.children, (child) => child?.visits ?? 0);
    this.done = 0;
  }

  /** Plan the simulations of an answer. */
  plan(simulations, most = simulations) {
    this.dues = halvingDues(Math.min(this.root.slots.length, consideredActions(this.options, most)), simulations);
  }

  /** Make the next simulation of the plan; false where it is done. */
  step() {
    if (this.done >= this.dues.length) return false;
    let node = this.root, place = this.bestDue(this.dues[this.done]), child = node.children[place];
    while (child && child.discount !== 0) {
      node = child;
      place = this.placeBelow(node);
      child = node.children[place];
    }
    if (child) child.visits++;  // The end of a game.
    else child = this.expand(node, place);
    backUp(child);
    this.done++;
    return true;
  }

  makeNode(position, parent) {
    const count = legalSlots(this.variant, position, slots);
    return {
      position, parent, slots: slots.slice(0, count), logits: null, prior: null, children: Array(count).fill(null),
      visits: 1, raw: 0, value: 0, reward: 0, discount: 0, qvalue: 0,
    };
  }

  setPrior(node, logits) {
    node.logits = logits;
    node.prior = softmax(logits);
  }

  expand(parent, place) {
    const { variant, rewards } = this, root = this.root.position.player, position = clonePosition(parent.position);
    const found = playSlot(variant, position, parent.slots[place]);
    if (position.over) writeRewards(variant, position, found, rewards);
    const node = this.makeNode(position, parent), isOwn = parent.position.player === root, stays = (position.player === root) === isOwn;
    parent.children[place] = node;
    this.nodes++;
    node.reward = position.over ? rewards[root] * (isOwn ? 1 : -1) : 0;
    node.discount = position.over ? 0 : stays ? 1 : -1;
    if (!position.over) {
      const { logits, values } = this.evaluator.evaluate(position, node.slots, node.slots.length), { players } = variant;
      this.setPrior(node, logits);
      // Two sides: the player at the root, and all others.
      node.raw = node.value = fround(values[(root - position.player + players) % players]) * (position.player === root ? 1 : -1);
    }
    node.qvalue = node.reward + node.discount * node.value;
    return node;
  }

  /** Write expected rewards of a node's slots, visited or not, and the same in logits; returns the latter. */
  complete(node) {
    const { value_scale, visit_offset, rescale_values, least_spread } = this.options, { children, prior } = node, count = children.length;
    let share = 0, sum = 0, most = 0, seen = 0;
    for (let i = 0; i < count; i++) {
      const child = children[i];
      if (!child) continue;
      share += prior[i];
      sum += prior[i] * child.qvalue;
      if (child.visits > most) most = child.visits;
      seen++;
    }
    const mean = share > 0 ? sum / share : 0, mixed = fround((node.raw + (node.visits - 1) * mean) / node.visits);
    // Slots that are not legal count as unseen.
    let low = seen < this.variant.slots ? mixed : Infinity, high = seen < this.variant.slots ? mixed : -Infinity;
    for (let i = 0; i < count; i++) {
      const value = children[i] ? children[i].qvalue : mixed;
      expected[i] = value;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    const scale = fround(fround(value_scale) * fround(visit_offset + most)), spread = Math.max(fround(high - low), fround(least_spread));
    for (let i = 0; i < count; i++) {
      completed[i] = rescale_values ? fround(scale * fround(expected[i] - low)) / spread : scale * expected[i];
    }
    return completed;
  }

  /** The place of the best slot of the root that has had so many visits in this search; the first of equals. */
  bestDue(due) {
    const { root, before } = this, values = this.complete(root);
    let best = 0, most = -Infinity, largest = -Infinity;
    for (let i = 0; i < root.logits.length; i++) if (root.logits[i] > largest) largest = root.logits[i];
    for (let i = 0; i < root.children.length; i++) {
      if ((root.children[i]?.visits ?? 0) - before[i] !== due) continue;
      const score = Math.max(fround(fround(root.logits[i] - largest) + values[i]), NO_CHANCE);
      if (score > most) {
        most = score;
        best = i;
      }
    }
    return best;
  }

  /** The place whose share of the visits lags furthest behind the improved policy. */
  placeBelow(node) {
    const policy = this.improved(node), { children, visits } = node;
    let best = 0, most = -Infinity;
    for (let i = 0; i < policy.length; i++) {
      const score = fround(policy[i] - fround((children[i]?.visits ?? 0) / visits));
      if (score > most) {
        most = score;
        best = i;
      }
    }
    return best;
  }

  improved(node) {
    const values = this.complete(node);
    for (let i = 0; i < node.logits.length; i++) values[i] += node.logits[i];
    return softmax(values, node.logits.length);
  }

  /**
   * What the search has found, for the player to move; places are those of root.slots, lines are of slots.
   * @returns {{place: number, policy: Float32Array, value: number, values: Float32Array, bestValues: Float32Array,
   *   visits: number, candidates: {place: number, visits: number, value: number, line: {position: object, slot: number}[]}[]}}
   */
  result() {
    const { root, before } = this, made = root.children.map((child, i) => (child?.visits ?? 0) - before[i]);
    const place = this.bestDue(Math.max(...made)), policy = this.improved(root);
    this.complete(root);
    const rank = (i) => (i === place ? Infinity : (root.children[i]?.visits ?? 0) + 0.5 * policy[i]);
    const shown = [...root.slots.keys()].filter((i) => root.children[i]).sort((a, b) => rank(b) - rank(a)).slice(0, MOST_LINES);
    const candidates = shown.map((i) => ({ place: i, visits: root.children[i].visits, value: root.children[i].qvalue, line: lineOf(root, i) }));
    return {
      place, policy, candidates, value: root.value, visits: root.visits,
      values: shareValue(this.scores, root.value), bestValues: shareValue(this.scores, expected[place]),
    };
  }
}

/** Count the value of a node in at all nodes above it. */
function backUp(node) {
  let value = node.value;
  if (node.discount === 0) value = 0;
  for (; node.parent; node = node.parent) {
    const { parent } = node;
    value = fround(node.reward + node.discount * value);
    parent.value = fround(fround(fround(parent.value * parent.visits) + value) / (parent.visits + 1));
    parent.visits++;
    parent.qvalue = parent.reward + parent.discount * parent.value;
  }
}

function size(node) { return node.children.reduce((sum, child) => sum + (child ? size(child) : 0), 1); }

/** A slot and those of the most visits below it, of equal visits that of the highest value. */
function lineOf(node, place) {
  const line = [];
  while (line.length < LINE_PLIES) {
    line.push({ position: node.position, slot: node.slots[place] });
    node = node.children[place];
    if (!node?.children.some(Boolean)) break;
    place = node.children.reduce((best, child, i) => {
      const known = node.children[best];
      return child && (!known || child.visits > known.visits || (child.visits === known.visits && child.qvalue > known.qvalue)) ? i : best;
    }, 0);
  }
  return line;
}

/** Each player's value, from the one to move on, once that one's is found: the others share the change. */
function shareValue(scores, value) {
  const shares = Float32Array.from(scores);
  shares[0] = value;
  const rest = shares.reduce((sum, each) => sum + each, 0) / (shares.length - 1);
  return shares.map((each, i) => (i ? each - rest : each));
}

/** A place with chances policy^(1 / temperature), by a number from 0 to below 1. */
export function drawPlace(policy, temperature, uniform) {
  const chances = softmax(Float64Array.from(policy, (each) => Math.log(Math.max(each, 1e-300)) / temperature)).map((chance, i) => (policy[i] > 0 ? chance : 0));
  let left = uniform * chances.reduce((sum, chance) => sum + chance, 0);
  const place = chances.findIndex((chance) => (left -= chance) < 0);
  return place < 0 ? chances.length - 1 : place;
}
