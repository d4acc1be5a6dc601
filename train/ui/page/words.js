// Rule sets and levels in a player's words; commands and files have their names.

import { count } from "./html.js";

const RULES = {
  "wallzero-4stone": "Quick start", "wallzero-empty": "Empty board", hkoi: "Contest", custom: "Custom",
  "playwallgo-2p": "Twenty walls", "playwallgo-3p": "Twenty walls", "playwallgo-4p": "Twenty walls",
};

const TIES = {
  region: "A tie goes to the largest single region.", mover_loses: "In a tie the last to move loses.",
  "region,mover_loses": "A tie goes to the largest single region, else the last to move loses.",
};

const LEVELS = {
  beginner: "your first game", novice: "you know the rules", casual: "you plan your walls", club: "you play often",
  strongest: "it thinks longest",
};

// What a rule set is called, by its name.
export function titleOfRules(name) { return RULES[name] ?? name; }

// The same with the number of players, where one is chosen.
export function choiceText({ name, players }) { return `${titleOfRules(name)} · ${players} players`; }

// What sets some rules apart from others: "4 stones each, 2 of them set at the start. …".
export function describeRules({ size, players, stones, start, walls, tie }) {
  const isSet = start.length ? `, ${start.length / players} of them set at the start` : "";
  const limit = walls === null ? "" : `, ${count(walls, "wall")} each`;
  const end = TIES[String(tie)] ?? "A tie is a draw.";
  return `${size}×${size} cells, ${count(stones, "stone")} each${isSet}${limit}. ${end}`;
}

// For whom a level is.
export function describeLevel({ name }) {
  const title = `${name[0].toUpperCase()}${name.slice(1)}`;
  return name in LEVELS ? `${title}: ${LEVELS[name]}` : title;
}

// A level's Elo with its 95 % interval, or what is known in its place.
export function describeElo({ rating }, zero) {
  if (!rating) return "its strength is not measured";
  const margin = Math.round(Math.max(rating.high - rating.elo, rating.elo - rating.low));
  return `Elo ${rating.elo}${margin ? ` ± ${margin}` : ""}, with ${zero} at 0`;
}
