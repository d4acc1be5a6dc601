// The machine of a board: its levels, and its searches by the engine. Each search has a session of its own, so that hints
// do not make a weak level stronger.

import { Lost } from "./engine_client.js";
import { pathTo } from "./tree.js";
import * as referee from "./referee.js";

const MAX_IDEAS = 5;
const NO_REVIEW = "it needs Python's engine. Save this game, start python -m train play, and load it there";

export class Machine {
  // choices: those of choices.json; client: an EngineClient.
  constructor(client, choices) {
    this.client = client;
    this.choices = choices;
    this.hint = choices.hint;
    this.glance = choices.glance;
    this.activity = null;  // what is set up for the rules of the game: stage, began, done and total
    this.secondsPer = null;  // of a simulation, by the last search
    this.prefix = Math.random().toString(36).slice(2);
    this.number = 0;
  }

  level(name) { return this.choices.levels.find((level) => level.name === name); }

  // The machine that plays some rules: its name, and ratings by level.
  playerOf(rules) {
    const { machines, other } = this.choices, same = (each) => referee.sameRules(referee.readRules(each), rules);
    return machines.find((machine) => machine.rules.some(same)) ?? { name: other, ratings: {}, rules: [] };
  }

  // Has the engine made ready for a game's rules, while people think.
  async prepare(game) {
    const bgsId = this.newSession();
    try {
      await this.client.ask({ type: "start_game_session", bgsId, ...startOf(game.tree) }, (progress) => this.note(progress));
      await this.client.ask({ type: "end_game_session", bgsId });
    } catch {
      // The first search that is wanted says what is wrong.
    }
    this.activity = null;
  }

  note({ stage, done, total }) {
    const began = this.activity?.stage === stage ? this.activity.began : performance.now();
    this.activity = { stage, done, total, began };
  }

  // Searches a position: { report: promise, stop() }. The report's action is the level's move.
  search(game, { node, simulations, temperature }, onProgress = () => {}) {
    let bgsId = "", isStopped = false;
    const ask = (type, fields) => this.client.ask({ type, bgsId, ...fields }, (progress) => {
      if (progress.stage === "searching") onProgress({ done: progress.done });
      else this.note(progress);
    });
    const run = async () => {
      const moves = pathTo(node).slice(1).map((each) => each.text);
      await ask("start_game_session", { ...startOf(game.tree), moves });
      this.activity = null;
      const began = performance.now();
      onProgress({ began });
      const evaluated = ask("evaluate_position", { simulations, temperature, details: true, progress: true });
      if (isStopped) this.client.ask({ type: "stop_search", bgsId }).catch(() => {});
      try {
        const response = await evaluated;
        this.secondsPer = (performance.now() - began) / 1000 / Math.max(1, simulations);
        return readReport(response, node, simulations);
      } finally {
        ask("end_game_session", {}).catch(() => {});
      }
    };
    const again = async () => {
      while (!isStopped) {
        bgsId = this.newSession();
        try {
          return await run();
        } catch (error) {
          if (!(error instanceof Lost)) throw error;
        }
      }
      throw new Error("the search was stopped");
    };
    const stop = () => {
      if (!isStopped && bgsId) this.client.ask({ type: "stop_search", bgsId }).catch(() => {});
      isStopped = true;
    };
    return { report: again(), stop };
  }

  // Has the line of a game reviewed: marks of the moves, a report of each position, accuracies, and the review's name.
  async review(game, line, onShare) {
    if (this.choices.engine === "worker") throw new Error(NO_REVIEW);
    const request = {
      type: "review_game", bgsId: this.newSession(), ...startOf(game.tree),
      moves: line.slice(1).map((node) => node.text), players: game.tree.names ?? game.seats,
    };
    const { review, accuracy, marks, evaluations } = await this.client.ask(request, ({ done }) => onShare(done));
    const reports = evaluations.map((each, place) => readReport(each, line[place], each.simulations));
    return { name: review, accuracy, marks, reports };
  }

  // Seconds of a search, by the last one; 0 before any.
  secondsOf(simulations) { return (this.secondsPer ?? 0) * simulations; }

  newSession() {
    this.number += 1;
    return `${this.prefix}-${this.number}`;
  }
}

function startOf(tree) {
  return tree.diagram === null ? { rules: referee.writeRules(tree.rules) } : { position: tree.diagram };
}

// A response to evaluate_position as the page shows it: the moves of the most visits first.
function readReport(response, node, simulations) {
  const { bestMove, chances, owners, candidates = [] } = response, { state, position: { size } } = node;
  const ideas = [...candidates].sort((one, other) => other.visits - one.visits).slice(0, MAX_IDEAS);
  return {
    simulations, chances, owners, action: bestMove ? referee.read(state, bestMove) : null,
    ideas: ideas.map(({ move, winChance, policy, visits, line }) => ({
      ...referee.parts(referee.read(state, move), size), winChance, share: policy, visits,
      line: line.map((each) => referee.inWords(each, size)),
    })),
  };
}
