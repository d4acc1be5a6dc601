// A game with its variations: a tree of positions, each reached by one ply from its parent.

import * as referee from "./referee.js";

export const MAX_NODES = 2000;

export class Node {
  constructor(number, parent, state, action) {
    this.number = number;  // its name; a number is never used twice
    this.parent = parent;  // null at the root
    this.state = state;
    this.action = action;  // public id of the ply that leads here; null at the root
    this.children = [];  // the plies that were tried from here, the main line first
    this.report = null;  // of the deepest search so far
    this.chances = null;  // each player's, and the simulations behind them: also where the report is not kept
    this.simulations = 0;
    this.mark = "";  // a review's mark of the ply that leads here
  }

  // The position in plain data, as boards draw it.
  get position() {
    this.looked ??= referee.look(this.state);
    return this.looked;
  }

  get mover() { return this.parent && this.parent.position.player; }

  get text() { return this.action === null ? "" : referee.write(this.action, this.position.size); }

  // Keeps a search, unless a deeper one is known.
  note(report) {
    if ((this.report?.simulations ?? 0) <= report.simulations) this.report = report;
    if (this.simulations > report.simulations) return;
    this.chances = report.chances;
    this.simulations = report.simulations;
  }
}

// The positions from the root to a node, both included.
export function pathTo(node) {
  const path = [];
  for (let each = node; each; each = each.parent) path.push(each);
  return path.reverse();
}

export class GameTree {
  // diagram: the text of the position that it starts from; null for the rules' own start.
  constructor(rules, diagram = null) {
    this.rules = rules;
    this.diagram = diagram;
    this.names = null;  // of the players of a loaded game; null for those of the seats
    this.root = new Node(0, null, diagram === null ? referee.begin(rules) : referee.readDiagram(diagram).state, null);
    this.current = this.root;
    this.nodes = new Map([[0, this.root]]);  // parents before their children
    this.next = 1;
  }

  get size() { return this.nodes.size; }

  node(number) {
    const found = this.nodes.get(number);
    if (!found) throw new Error(`node: ${number} is not a position of this game`);
    return found;
  }

  // Plays in the current position and goes there.
  play(action) {
    this.current = this.add(this.current, action);
    return this.current;
  }

  // The position after a ply; one that was tried before is not added again.
  add(before, action) {
    const known = before.children.find((child) => child.action === action);
    if (known) return known;
    if (this.size >= MAX_NODES) throw new Error(`this game already holds ${MAX_NODES} positions; start a new one`);
    const node = new Node(this.next, before, referee.play(before.state, action), action);
    this.nodes.set(this.next, node);
    this.next += 1;
    before.children.push(node);
    return node;
  }

  // Takes a position and all that follows from it out of the tree.
  remove(node) {
    if (!node.parent) throw new Error("the start of a game cannot be taken back");
    if (pathTo(this.current).includes(node)) this.current = node.parent;
    node.parent.children.splice(node.parent.children.indexOf(node), 1);
    const waiting = [node];
    while (waiting.length) {
      const gone = waiting.pop();
      waiting.push(...gone.children);
      this.nodes.delete(gone.number);
    }
  }

  // Makes the line to a position the main line.
  promote(node) {
    for (const each of pathTo(node).slice(1)) {
      const { children } = each.parent;
      children.splice(children.indexOf(each), 1);
      children.unshift(each);
    }
  }
}
