// The games that this browser keeps, each under its name: they outlive their tabs.

import { dropStore, onStore, readStore, storeKeys, writeStore } from "./html.js";

const PREFIX = "game.", LOCK = "wallgo.game.", PLAYS = "wallgo.plays.";
const MAX_GAMES = 32;
const MAX_OFFERED = 3;

// A name for a new game.
export function newName() {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");
}

export function isName(text) { return /^[\w-]{12}$/.test(text); }

// What is kept of a game: copy, rules, plies, isFinished, and at, the time in milliseconds; null for nothing.
export function keptGame(name) { return readStore(PREFIX + name, null); }

// Whether a copy holds nothing but the start of a game.
export function isBlank(copy) { return !copy?.plies?.length && !copy?.position; }

// Calls a function with the name of a game that another tab has changed, and its copy.
export function onOtherTab(take) {
  onStore((key, value) => { if (key.startsWith(PREFIX) && value) take(key.slice(PREFIX.length), value.copy); });
}

// Keeps a game as it is now: its copy, and what is said of it; returns whether it is kept. The oldest games make room for
// it, those without a move first.
export function keepGame(name, copy, about) {
  const key = PREFIX + name, game = { at: Date.now(), ...about, copy };
  let isKept = writeStore(key, game);
  const fits = () => isKept && storeKeys(PREFIX).length <= MAX_GAMES;
  if (fits()) return true;
  const others = keptGames().filter((each) => each.name !== name);
  others.sort((one, other) => isBlank(other.copy) - isBlank(one.copy) || one.at - other.at);
  for (const other of others) {
    dropStore(PREFIX + other.name);
    isKept ||= writeStore(key, game);
    if (fits()) return true;
  }
  return isKept;
}

function keptGames() {
  const names = storeKeys(PREFIX).map((key) => key.slice(PREFIX.length));
  return names.map((name) => ({ at: 0, copy: null, ...keptGame(name), name }));
}

// Whether this browser keeps a move of another game.
export function playedBefore(name) { return keptGames().some((game) => game.name !== name && !isBlank(game.copy)); }

let letGo = () => {};  // takes the mark away
let marking = null, left = null;  // promises that marks are gone: that of this game, that of the one before

// Marks the game that this tab shows, until it shows another or is closed. onTurn is called once this tab is the one, of
// all that show the game, that asks the machine for moves.
export function holdGame(name, onTurn) {
  letGo();
  left = marking;
  const held = new Promise((resolve) => { letGo = resolve; });
  if (!navigator.locks) {
    onTurn();
    return;
  }
  const take = (lock, mode, begun) => navigator.locks.request(lock, { mode }, () => {
    begun();
    return held;
  });
  marking = take(LOCK + name, "shared", () => {}).catch(() => {});
  let isLeft = false;
  held.then(() => { isLeft = true; });
  take(PLAYS + name, "exclusive", () => { if (!isLeft) onTurn(); }).catch(onTurn);
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
