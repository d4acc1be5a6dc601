// The fold of a new game in which rules are put together: fields, and the same as a record's JSON.

import { $ } from "./html.js";

const FIELDS = ["size", "players", "stones", "setup", "walls", "room", "tie"];
const TIES = { region: ["region"], both: ["region", "mover_loses"], last: ["mover_loses"], draw: [] };

export class CustomRules {
  // on has check(rules), which returns rules to choose or throws what is wrong, and change(), after each check.
  constructor(on) {
    this.on = on;
    this.choice = null;  // the rules to choose; null while something is wrong with them
    for (const field of FIELDS) $(`#custom-${field}`).addEventListener("input", () => this.write());
    $("#custom-json").addEventListener("input", () => this.check());
  }

  // Begin with some rules' fields.
  fill(rules) {
    $("#custom-size").value = rules.size;
    $("#custom-players").value = rules.players;
    $("#custom-stones").value = rules.stones;
    $("#custom-walls").value = rules.walls ?? "";
    $("#custom-room").checked = rules.stay_needs_room;
    const ways = Object.keys(TIES);
    $("#custom-tie").value = ways.find((way) => String(TIES[way]) === String(rules.tie)) ?? ways[0];
    const isSnake = String(rules.order) === String(turns(rules.players, rules.order.length / rules.players, true));
    $("#custom-setup").value = rules.start.length ? "corners" : isSnake ? "snake" : "rounds";
    this.show(rules);
  }

  // Write the rules that the fields say.
  write() {
    const number = (field) => Number($(`#custom-${field}`).value);
    const size = number("size"), players = number("players"), stones = number("stones"), setup = $("#custom-setup").value;
    const start = setup === "corners" ? corners(size, players) : [];
    const left = Math.max(0, stones - start.filter(([, , player]) => player === 0).length);
    this.show({
      size, players, stones, start, order: turns(players, left, setup !== "rounds"),
      walls: $("#custom-walls").value === "" ? null : number("walls"),
      stay_needs_room: $("#custom-room").checked, tie: TIES[$("#custom-tie").value],
    });
  }

  show(rules) {
    $("#custom-json").value = JSON.stringify(rules);
    this.check();
  }

  check() {
    let error = "";
    this.choice = null;
    try {
      this.choice = this.on.check(readJson($("#custom-json").value));
    } catch (wrong) {
      error = wrong.message;
    }
    $("#custom-error").textContent = error;
    this.on.change();
  }
}

function readJson(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`rules: not JSON: ${error.message}`);
  }
}

// Whose stone is placed, in turn: 0 1 0 1, or back and forth 0 1 1 0.
function turns(players, rounds, isSnake) {
  const line = [...Array(Math.min(players, 9)).keys()];
  return [...Array(Math.min(rounds, 99)).keys()].flatMap((round) => isSnake && round % 2 ? line.toReversed() : line);
}

// Stones one step in from the corners: two players have two each, opposite ones, more have one.
function corners(size, players) {
  const far = size - 2;
  const all = players === 2 ? [[far, 1, 0], [1, far, 0], [1, 1, 1], [far, far, 1]]
    : [[far, 1, 0], [1, far, 1], [1, 1, 2], [far, far, 3]];
  return all.filter(([, , player]) => player < players);
}
