// The mistakes that a review found, one after the other: each position is set again, to be played better.

import { ANALYSE, PERSON, onlyPerson } from "./game.js";
import { pathTo } from "./tree.js";

const MISTAKES = ["?", "??"];  // marks; "?!" is an inaccuracy
const GOOD_LOSS = 0.05;  // of the chance to win: a move that loses less has no mark in a review
export const BEST = "best", GOOD = "good", BETTER = "better", WORSE = "worse", PLAYED = "played";  // verdicts on a tried move

// The positions after the mistakes of the people at the board, of all players where there are no people; those after
// inaccuracies where there is nothing worse.
function mistakesOf({ tree, seats, review }) {
  const tip = review?.name && tree.nodes.get(review.tip);
  if (!tip) return [];
  const counts = (player) => seats[player] === PERSON || !seats.includes(PERSON);
  const marked = pathTo(tip).filter((node) => node.mark && counts(node.mover));
  const mistakes = marked.filter((node) => MISTAKES.includes(node.mark));
  return mistakes.length ? mistakes : marked;
}

// Looks at the position before the next mistake; after the last at that of the first.
export function goToNext(game) {
  const mistakes = mistakesOf(game);
  if (!mistakes.length) throw new Error("the review found no mistake");
  const place = mistakes.findIndex(({ number }) => number === game.mistake);
  const next = mistakes[(place + 1) % mistakes.length];
  game.setMode(ANALYSE);
  game.mistake = next.number;
  game.go(next.parent.number);
}

// Looks at the position before the mistake again.
export function tryAgain(game) { game.go(game.tree.node(game.mistake).parent.number); }

// The mistakes as a page shows them: their number, and the one that is looked at, with the move that is tried there.
export function lookAtMistakes(game) {
  const { tree } = game;
  const mistakes = mistakesOf(game);
  const place = mistakes.findIndex(({ number }) => number === game.mistake);
  const mistake = mistakes[place];
  const isTried = mistake && tree.current.parent === mistake.parent;
  if (!mistake || !(isTried || tree.current === mistake.parent)) return { total: mistakes.length, open: null };
  const { mark, mover, text, parent } = mistake;
  const ply = mistake.position.ply;
  const chances = game.seats.length === 2 ? [parent, mistake].map((node) => chanceOf(node, mover)) : null;
  const isYours = mover === onlyPerson(game);
  const open = { place: place + 1, isInaccuracy: !MISTAKES.includes(mark), isYours, mark, mover, text, ply, chances };
  return { total: mistakes.length, open: { ...open, tried: isTried ? judge(tree.current, mistake, chances) : null } };
}

// A tried move: its text, its player's chance and a verdict, both null while it is searched or where more than two play.
function judge(node, mistake, chances) {
  const chance = chances && chanceOf(node, mistake.mover);
  const tried = { text: node.text, chance, verdict: null };
  if (node === mistake) return { ...tried, verdict: PLAYED };
  if (node.action === mistake.parent.report?.action) return { ...tried, verdict: BEST };
  if (chance === null) return tried;
  const [before, after] = chances;
  if (before - chance < GOOD_LOSS) return { ...tried, verdict: GOOD };
  return { ...tried, verdict: chance - after < GOOD_LOSS ? WORSE : BETTER };
}

function chanceOf({ position, chances }, player) {
  if (position.isOver) return (1 + position.payoff[player]) / 2;
  return chances && chances[player];
}
