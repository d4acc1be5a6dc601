// A game in an address: rules or a position, and the moves, so that it can be sent to a friend.

import * as referee from "./referee.js";
import { pathTo } from "./tree.js";

// The fragment of an address that holds the line to the position that is looked at.
export function writeLink({ tree }) {
  const moves = pathTo(tree.current).slice(1).map((node) => node.text.replace("->", "-"));
  const rules = referee.writeRules(tree.rules);
  const start = tree.diagram === null ? { rules: typeof rules === "string" ? rules : JSON.stringify(rules) } : { position: tree.diagram };
  return new URLSearchParams({ ...start, moves: moves.join(" ") }).toString();
}

// The start and the moves that a fragment holds: { position, moves } or { rules, moves }; null where it holds no game.
export function readLink(fragment) {
  const fields = new URLSearchParams(fragment), rules = fields.get("rules"), position = fields.get("position");
  if (!rules && !position) return null;
  const moves = (fields.get("moves") ?? "").split(/[\s,]+/).filter(Boolean).map((move) => move.replace(/-(?!>)/, "->"));
  if (position) return { position, moves };
  return { rules: rules.startsWith("{") ? JSON.parse(rules) : rules, moves };
}
