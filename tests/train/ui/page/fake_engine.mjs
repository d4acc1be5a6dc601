// An engine that answers the page's machine in the same process: the first legal move, or what a test says.

import { EngineClient } from "../../../../train/ui/page/engine_client.js";
import { Machine } from "../../../../train/ui/page/machine.js";
import * as rules from "../../../../train/ui/page/engine/rules.js";

export const CHOICES = {
  version: "1", rules: "wallzero-4stone", level: "novice", hint: 256, glance: 64, zero: "wjx", other: "any", puzzles: [],
  levels: [{ name: "novice", simulations: 1, temperature: 3 }, { name: "expert", simulations: 256, temperature: 0 }],
  machines: [{ name: "known", rules: ["wallzero-4stone"], ratings: {} }],
};

// heard: requests to evaluate, as [simulations, plies]. While `held` is a list, answers to those wait in it. reviewed: chances of
// each position and marks of each move that a review finds. chance: Red's, of all else that is evaluated, null for an even one.
export function makeMachine(choices = {}) {
  const heard = [], sessions = new Map(), engine = { heard, held: null, fails: "", reviewed: null, chance: null };
  const answer = (client, request) => {
    const { type, bgsId } = request, say = (fields) => client.received({ bgsId, success: true, error: "", ...fields });
    if (type === "start_game_session") {
      const variant = rules.makeVariant(rules.readRules(request.rules));
      let position = rules.initialPosition(variant);
      for (const move of request.moves ?? []) position = rules.play(variant, position, rules.parseAction(move, variant.grid));
      sessions.set(bgsId, { variant, position });
      say({ type: "game_session_started" });
    } else if (type === "evaluate_position") {
      const { variant, position } = sessions.get(bgsId), go = () => {
        if (engine.fails) say({ type: "evaluate_response", success: false, error: engine.fails });
        else say({ ...evaluation(variant, position, request.simulations), ...(engine.chance === null ? {} : { chances: [engine.chance, 1 - engine.chance] }) });
      };
      heard.push([request.simulations, position.ply]);
      engine.held ? engine.held.push(go) : go();
    } else if (type === "review_game") {
      const variant = rules.makeVariant(rules.readRules(request.rules)), positions = [rules.initialPosition(variant)];
      for (const move of request.moves) positions.push(rules.play(variant, positions.at(-1), rules.parseAction(move, variant.grid)));
      const evaluations = positions.map((each, place) => ({ ...evaluation(variant, each, CHOICES.hint), chances: engine.reviewed.chances[place] }));
      say({ type: "game_reviewed", review: "reviews/one", accuracy: [90, null], marks: engine.reviewed.marks, evaluations });
    } else if (type === "stop_search") {
      say({ type: "search_stopped" });
      say({ type: "evaluate_response", success: false, error: "the search was stopped" });
    } else {
      sessions.delete(bgsId);
      say({ type: "game_session_ended" });
    }
  };
  const client = new EngineClient((opened) => {
    engine.client = opened;
    opened.connected((request) => queueMicrotask(() => answer(opened, request)));
  });
  return Object.assign(engine, { machine: new Machine(client, { ...CHOICES, ...choices }) });
}

function evaluation(variant, position, simulations) {
  const name = (action) => rules.formatAction(action, variant.grid), actions = rules.legalActions(variant, position);
  const candidates = actions.slice(0, 9).map((action, place) => ({
    move: name(action), policy: 0.1, visits: place === 2 ? 8 : 1, winChance: 0.5, line: [name(action)],
  }));
  return {
    type: "evaluate_response", bestMove: name(actions[0]), simulations, candidates,
    chances: Array(variant.players).fill(1 / variant.players), owners: null,
  };
}

// Waits until something holds.
export async function until(holds) {
  for (let turn = 0; turn < 500; turn++) {
    if (holds()) return;
    await new Promise((resolve) => { setTimeout(resolve, 1); });
  }
  throw new Error(`never: ${holds}`);
}
