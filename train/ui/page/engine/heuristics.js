// Evaluators without a network: HKOI's distance heuristic and greed for territory, as in train/players.
//
// API: makeHeuristic(variant, formula), makeGreedy(variant); both have `evaluate(position, slots, count)` as networks have.

import { analyse, clonePosition, copyPosition, playSlot, writeRewards } from "./rules.js";
import { writeSteps } from "./planes.js";

const [SURE_OWN, SURE_OTHER, SEMI_SURE_OWN, SEMI_SURE_OTHER] = [0.9, -0.85, 0.8, -0.75];
const BOUNDARY = 6;
const GUESS_WEIGHT = 0.9;
const SCALE = 10;
const DECIDED = 1000;
const NO_WAY = 127;
const NO_GROUP = -1;
const FORMULAS = {
  ethen: (own, other) => 0.9 * (other - own) / Math.max(own, other),
  wjx: (own, other) => 1 - 2 * own / (own + other),
};
const { fround } = Math;

/** The heuristic in place of a network: logits are scores after one ply, values squashed ones. */
export function makeHeuristic(variant, formula = "wjx") {
  const { players, cells } = variant, { groups, weights } = makeGuesses(FORMULAS[formula]);
  const steps = Array.from({ length: players }, () => new Int8Array(cells)), counts = new Int32Array(weights.length);

  /** Scores of all players: each cell counts by who is nearer, and by how much. */
  function scores(position) {
    for (let player = 0; player < players; player++) {
      writeSteps(variant, position, player, false, steps[player]);
      // A side without a stone counts as one step less than far from every cell.
      if (!steps[player].includes(0)) steps[player].fill(BOUNDARY - 1);
    }
    const sides = [...Array(players).keys()];
    if (players === 2) return sides.map((side) => sum(side, false));
    // A cell is of the side that is nearer than every other: for it, and against it for each rival.
    const own = sides.map((side) => sum(side, false)), other = sides.map((side) => sum(side, true));
    const against = other.reduce((total, each) => fround(total + each));
    return sides.map((side) => fround(fround(own[side] + against) - other[side]));
  }

  /** The weights of cells between a side and the nearest of the others, seen from the other side where it is reversed. */
  function sum(side, isReversed) {
    counts.fill(0);
    for (let cell = 0; cell < cells; cell++) {
      const own = steps[side][cell];
      let other = NO_WAY;
      for (let player = 0; player < players; player++) if (player !== side && steps[player][cell] < other) other = steps[player][cell];
      if (players > 2 && own >= other) continue;
      const group = isReversed ? groupOf(other, own) : groupOf(own, other);
      if (group !== NO_GROUP) counts[group]++;
    }
    let total = 0;
    for (let group = 0; group < weights.length; group++) total = fround(total + fround(weights[group] * counts[group]));
    return total;
  }

  /** The number of the weight that cells of two distances share. */
  function groupOf(own, other) {
    if (own === NO_WAY || other === NO_WAY) return own === other ? NO_GROUP : own === NO_WAY ? 1 : 0;
    if (own >= BOUNDARY || other >= BOUNDARY) return own >= BOUNDARY && other >= BOUNDARY ? NO_GROUP : own >= BOUNDARY ? 3 : 2;
    return groups[own * BOUNDARY + other];
  }

  const look = makeLook(variant, (after, mover) => scores(after)[mover]);

  function evaluate(position, slots, count) {
    const mover = position.player, logits = look(position, slots, count), best = logits.reduce((most, each) => Math.max(most, each), -Infinity);
    const still = scores(position), values = new Float32Array(players);
    if (players === 2) {
      values[0] = Math.tanh(fround(fround(best + still[mover]) / 2) / SCALE);
      values[1] = -values[0];
      return { logits, values };
    }
    for (let ahead = 0; ahead < players; ahead++) values[ahead] = Math.tanh((ahead ? still[(mover + ahead) % players] : (still[mover] + best) / 2) / SCALE);
    const mean = values.reduce((total, each) => total + each) / players;
    const largest = values.reduce((most, each) => Math.max(most, Math.abs(each - mean)), 1);
    return { logits, values: values.map((each) => (each - mean) / largest) };
  }

  return { evaluate };
}

/** Weights, the four of sure and half-sure cells first, and the number of that of each pair of distances. */
function makeGuesses(formula) {
  const weights = [SURE_OWN, SURE_OTHER, SEMI_SURE_OWN, SEMI_SURE_OTHER].map(fround), groups = new Int8Array(BOUNDARY ** 2).fill(NO_GROUP);
  for (let pair = 0; pair < groups.length; pair++) {
    const own = Math.floor(pair / BOUNDARY), other = pair % BOUNDARY, guess = own === other ? 0 : GUESS_WEIGHT * formula(own, other);
    const weight = fround(Math.round(Math.min(Math.max(guess, SEMI_SURE_OTHER), SEMI_SURE_OWN) * 1e9) / 1e9);
    if (weight === 0) continue;
    const known = weights.indexOf(weight, 4);
    groups[pair] = known < 0 ? weights.push(weight) - 1 : known;
  }
  return { groups, weights };
}

/** The largest lead in territory after one ply: its slots have the logit 0, all others none. */
export function makeGreedy(variant) {
  const lead = (after, mover) => {
    const { territory } = analyse(variant, after);
    let most = 0;
    for (let player = 0; player < variant.players; player++) if (player !== mover) most = Math.max(most, territory[player]);
    return territory[mover] - most;
  };
  const look = makeLook(variant, lead, true);
  return {
    evaluate(position, slots, count) {
      const leads = look(position, slots, count), best = leads.reduce((most, each) => Math.max(most, each), -Infinity);
      return { logits: leads.map((each) => (each === best ? 0 : -1e9)), values: new Float32Array(variant.players) };
    },
  };
}

/** Scores of slots by what they lead to; the end of a game counts by its result, unless ends are scored, too. */
function makeLook(variant, score, scoresEnds = false) {
  const rewards = new Float32Array(variant.players);
  let after = null;
  return (position, slots, count) => {
    after ??= clonePosition(position);
    const found = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      copyPosition(after, position);
      const board = playSlot(variant, after, slots[i]);
      if (after.over && !scoresEnds) writeRewards(variant, after, board, rewards);
      found[i] = after.over && !scoresEnds ? DECIDED * rewards[position.player] : score(after, position.player);
    }
    return found;
  };
}
