// What a page shows of a game, in plain data.

import { ANALYSE, PERSON, PLAY, onlyPerson } from "./game.js";
import { COLOURS, cellName } from "./geometry.js";
import { count } from "./html.js";
import { lookAtMistakes } from "./mistakes.js";
import * as referee from "./referee.js";
import { describeRules, titleOfRules } from "./words.js";

const ORDINALS = ["first", "second", "third", "fourth"];

export const STONE = "stone", MOVE = "move";  // what a hint shows

export function viewOf(game, name) {
  const { tree, tip, seats } = game, node = tree.current, { position } = node;
  const { payoff } = position, best = payoff && Math.max(...payoff);
  return {
    game: name,
    rules: aboutRules(tree.rules),
    mode: game.mode,
    current: node.number,
    tip: tip.number,
    nodes: tree.nodes,
    root: tree.root,
    position,
    state: node.state,
    seats,
    names: tree.names,
    mayPlay: game.mayPlay,
    isOver: position.isOver || (node === tip && game.isOver),
    isFinished: game.isOver,
    status: status(game),
    goal: goal(game),
    thinking: game.search !== null,
    activity: activityOf(game),
    end: ending(game),
    error: game.error,
    clocks: clocksOf(game),
    evaluates: game.evaluates,
    evaluation: node.chances && { simulations: node.simulations, chances: node.chances, owners: null, ideas: [], ...node.report },
    hint: game.hint === node.number ? (game.hintsAtMove ? MOVE : STONE) : null,
    hintSimulations: game.machine.hint,
    // Of each player in the win, once the game is over by the rules.
    result: payoff && payoff.map((paid) => (paid === best) / payoff.filter((each) => each === best).length),
    puzzle: game.task && puzzle(game.task, tree.rules.size),
    review: reviewOf(game),
    mistakes: lookAtMistakes(game),
  };
}

export function aboutRules(rules) {
  const { size, players, stones } = rules;
  const name = referee.nameOf(rules);
  const title = titleOfRules(name);
  const about = describeRules(rules);
  const walls = rules.walls === null ? "" : `, ${rules.walls} walls`;
  const text = `Rules: ${title} (${size}×${size}, ${count(stones, "stone")}${walls} each)`;
  return { name, title, about, fields: referee.writeRules(rules), all: rules, size, players, stones, text };
}

// The player to move, or how the game ended.
function status(game) {
  const { current } = game.tree, { position } = current, colour = COLOURS[position.player], isTip = current === game.tip;
  if (isTip && game.forfeit) return forfeitText(game);
  if (isTip && game.isPosed) return `Puzzle: ${colour} to move`;
  if (position.isOver) return `Game over: ${resultText(position.payoff, game.mode === PLAY ? onlyPerson(game) : -1)}`;
  if (isTip && game.isMachinesTurn) return `${colour} (machine) is thinking`;
  const isYours = game.mode === PLAY && isTip && position.player === onlyPerson(game);
  const stone = ORDINALS[position.stones[position.player].filter((cell) => cell >= 0).length];
  if (position.inSetup) return isYours ? `You are ${colour}. Place your ${stone} stone` : `${colour} to place the ${stone} stone`;
  return isYours ? `You are ${colour}. Move a stone` : `${colour} to move`;
}

// What the game is about, while it begins.
function goal(game) {
  const { tree, mode, task } = game;
  const { current, rules } = tree;
  if (task || mode !== PLAY || current.position.isOver) return "";
  if (current.parent && !current.position.inSetup) return "";
  const you = onlyPerson(game);
  const standing = current.parent ? 0 : current.position.stones[0].filter((cell) => cell >= 0).length;
  const already = standing ? ` Of each colour, ${count(standing, "stone")} already ${standing > 1 ? "stand" : "stands"}.` : "";
  return `Goal: wall off ${rules.players === 2 && you >= 0 ? `more cells than ${COLOURS[1 - you]}` : "the most cells"}.${already}`;
}


// Who won; you: the player who reads it, or -1.
export function resultText(payoff, you = -1) {
  const winners = [...payoff.keys()].filter((player) => payoff[player] > 0);
  if (!winners.length) return "a draw";
  if (winners.includes(you)) return "you won";
  const text = `${winners.map((player) => COLOURS[player]).join(" and ")} won`;
  return you < 0 ? text : `you lost: ${text}`;
}

function forfeitText(game) {
  const [player, reason] = game.forfeit;
  return `${player === onlyPerson(game) ? "You" : COLOURS[player]} ${reason}`;
}

const SET_UP = { compiling: "The machine compiles its search for these rules", loading: "The machine loads its network" };

// What the machine does now, for how many seconds, and the share that is done or null.
export function activityOf({ machine, search }) {
  const seconds = (began) => (performance.now() - began) / 1000;
  if (machine.activity) {
    const { stage, began, done, total } = machine.activity;
    const parts = total ? `: ${done} of ${total} parts` : "";
    return { text: `${SET_UP[stage] ?? stage}${parts}`, seconds: seconds(began), share: total ? done / total : null };
  }
  if (!search?.isAwaited) return null;
  const share = search.done ? search.done / search.simulations : null;
  return { text: `Searches with ${count(search.simulations, "simulation")}`, seconds: seconds(search.began), share };
}

// How the game that is played ended: who won, the cells of each player and of nobody, the winner's cells over the mean of
// the others' (null without one winner, or where others have none), and plies.
export function ending(game) {
  const { tip, forfeit, isOver, task } = game;
  if (!isOver || task) return null;
  const { size, territory: cells, payoff, ply } = tip.position;
  const players = cells.length;
  const nobody = cells.reduce((left, each) => left - each, size * size);
  let title = "";
  let ratio = null;
  if (forfeit) {
    title = forfeitText(game);
    if (players === 2) {
      const result = [0, 1].map((player) => Number(player !== forfeit[0]));
      const isYours = forfeit[0] === onlyPerson(game);
      title = isYours ? `${title}: ${resultText(result)}` : `${resultText(result, onlyPerson(game))}: ${title}`;
    }
  } else {
    const winners = [...cells.keys()].filter((player) => payoff[player] > 0);
    const rest = cells.reduce((sum, each, player) => (winners.includes(player) ? sum : sum + each), 0);
    title = resultText(payoff, onlyPerson(game));
    if (winners.length === 1 && rest) ratio = (cells[winners[0]] * (players - 1)) / rest;
  }
  return { title: title[0].toUpperCase() + title.slice(1), cells, nobody, ratio, plies: ply };
}

// A puzzle; the solution only when it is known.
function puzzle({ puzzle: { key, difficulty, solution, played, win_chance: chance }, state, mover, tried }, size) {
  const view = { key, mover, state, difficulty, tried };
  if (state === "open") return view;
  const text = (move) => (move === null ? null : referee.inWords(move, size));
  return { ...view, solution: text(solution), played: text(played), chance: chance.solution, nextBest: chance.next_best };
}

// The progress of a review, or what it found; null without one.
export function reviewOf({ review }) {
  if (!review) return null;
  const { isRunning, began, positions, share } = review;
  const seconds = isRunning ? (performance.now() - began) / 1000 : 0;
  const searched = share ? `${Math.round(100 * share)} % searched` : "compiling the search";
  const text = `Reviewing ${count(positions, "position")}: ${share < 1 ? searched : "drawing the page"}`;
  return { ...review, text, seconds };
}

// Seconds that each player has left, or null without clocks.
export function clocksOf({ clocks, seats }) { return clocks && seats.map((_, player) => clocks.left(player)); }

// The players' names: those of the game that was loaded, else those of the seats.
export function namesOf({ tree, seats }) {
  return tree.names ?? seats.map((seat) => (seat === PERSON ? seat : `machine (${seat})`));
}
