// The games that this browser keeps, each under its name: they outlive their tabs and the server.

import { dropStore, readStore, storeKeys, writeStore } from "./html.js";

const PREFIX = "game.", LOCK = "wallgo.game.";
const MAX_GAMES = 32;  // More than the pages that a server lets be open.
const MAX_OFFERED = 3;

// What is kept of a game: copy, rules, plies, isFinished, and at, the time in milliseconds; null for nothing.
export function keptGame(name) { return readStore(PREFIX + name, null); }

// Whether a copy holds nothing but the start of a game.
export function isBlank(copy) { return !copy?.plies?.length && !copy?.position; }

// Keeps a game as it is now. The oldest games make room for it, those without a move first.
export function keepGame(view, plies) {
  const key = PREFIX + view.game, { copy, isFinished } = view;
  const game = { at: Date.now(), rules: view.rules.name, plies, isFinished, copy };
  let isKept = writeStore(key, game);
  const fits = () => isKept && storeKeys(PREFIX).length <= MAX_GAMES;
  if (fits()) return;
  const others = keptGames().filter(({ name }) => name !== view.game);
  others.sort((one, other) => isBlank(other.copy) - isBlank(one.copy) || one.at - other.at);
  for (const { name } of others) {
    dropStore(PREFIX + name);
    isKept ||= writeStore(key, game);
    if (fits()) return;
  }
}

function keptGames() {
  const names = storeKeys(PREFIX).map((key) => key.slice(PREFIX.length));
  return names.map((name) => ({ at: 0, copy: null, ...keptGame(name), name }));
}

// Whether this browser keeps a move of another game.
export function playedBefore(name) { return keptGames().some((game) => game.name !== name && !isBlank(game.copy)); }

let letGo = () => {};  // takes the mark away
let marking = null, left = null;  // promises that marks are gone: that of this game, that of the one before

// Marks the game that this tab shows, until it shows another or is closed.
export function holdGame(name) {
  letGo();
  left = marking;
  const held = new Promise((resolve) => { letGo = resolve; });
  marking = navigator.locks?.request(LOCK + name, { mode: "shared" }, () => held).catch(() => {});
}

// The latest games that can go on and that no tab shows; puzzles have a list of their own.
export async function unfinishedGames() {
  await left;
  const locks = await navigator.locks?.query().catch(() => null);
  const shown = new Set(locks?.held.map((lock) => lock.name));
  return keptGames()
    .filter(({ name, copy, isFinished }) => !isBlank(copy) && !isFinished && !copy.puzzle && !shown.has(LOCK + name))
    .sort((one, other) => other.at - one.at).slice(0, MAX_OFFERED);
}
