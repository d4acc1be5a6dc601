// Small helpers for the parts of the page outside the board.

import { LETTERS } from "./geometry.js";

export const $ = (selector) => document.querySelector(selector);

export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function disc(player) {
  return make("b", { class: `disc p${player}`, "aria-hidden": "true" }, LETTERS[player]);
}

export function percent(chance) { return `${Math.round(100 * chance)}\u202f%`; }

export function count(number, what) {
  const many = what.endsWith("y") ? `${what.slice(0, -1)}ies` : `${what}s`;
  return `${number} ${number === 1 ? what : many}`;
}

export function readStore(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`wallgo.${key}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

// Whether the value is kept now: a full or forbidden store costs the copy, not the game.
export function writeStore(key, value) {
  try {
    localStorage.setItem(`wallgo.${key}`, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export function dropStore(key) {
  try { localStorage.removeItem(`wallgo.${key}`); } catch { }
}

// The keys with a prefix.
export function storeKeys(prefix) {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(`wallgo.${prefix}`));
    return keys.map((key) => key.slice("wallgo.".length));
  } catch {
    return [];
  }
}

// Calls a function with each key, and its value, that another tab writes.
export function onStore(take) {
  addEventListener("storage", ({ key, newValue }) => {
    if (key?.startsWith("wallgo.") && newValue !== null) take(key.slice("wallgo.".length), JSON.parse(newValue));
  });
}
