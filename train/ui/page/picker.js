// A board and the move in the making on it: clicks, drags, walls and steps back become picks, and picks a move.

import { Board } from "./board.js";
import { cellName } from "./geometry.js";
import * as picking from "./picking.js";
import * as referee from "./referee.js";

// A position to draw before there is a game.
export function emptyPosition(size) {
  return {
    size, stones: [], walls: [], owner: Array(size * size).fill(-1), last: null, inSetup: true, player: 0,
    legal: { cells: [], plays: {} },
  };
}

export class Picker {
  // on has play(move), changed(), refuse(reason), say(text) and status(); an editor also cell(cell) and edge(place), which say
  // whether they took the click.
  constructor(svg, on) {
    this.on = on;
    this.view = { position: emptyPosition(7), state: null, mayPlay: false };
    this.pick = picking.NOTHING;
    this.hasPointer = matchMedia("(hover: hover)").matches;
    this.board = new Board(svg, {
      cell: (cell) => this.onCell(cell), drag: (from, to) => this.onDrag(from, to), side: (side) => this.onSide(side),
      edge: (place) => on.edge?.(place), back: () => this.undo(), say: on.say, refuse: on.refuse,
    });
  }

  get hasPick() { return this.pick !== picking.NOTHING; }

  get advice() { return this.view.mayPlay ? picking.advice(this.view.position, this.pick, this.hasPointer) : ""; }

  // Shows another view. The pick stays where the position does.
  show(view, isSame) {
    if (!isSame) this.pick = picking.NOTHING;
    this.view = view;
  }

  draw({ ideas = null, hinted = [], ...more } = {}) {
    const isPicking = this.pick.origin !== null;
    this.board.draw({
      position: this.view.position, pick: this.pick, active: this.view.mayPlay, allEdges: false, owners: null,
      ideas: isPicking ? null : ideas, hinted: isPicking ? [] : hinted, ...more,
    });
  }

  play(move) {
    this.pick = picking.NOTHING;
    this.on.play(move);
  }

  // Forgets the pick, so that a hint is seen.
  drop() { this.pick = picking.NOTHING; }

  // Undoes the last pick; without one, `changed` takes a message away.
  undo() {
    if (!this.hasPick) {
      this.on.changed();
      return;
    }
    const before = picking.undo(this.pick);
    this.setPick(before.origin === null ? picking.NOTHING : before);
  }

  setPick(pick) {
    this.pick = pick;
    this.on.changed();
    const picked = pick.target ?? pick.origin, { position } = this.view;
    const named = picked === null || position.inSetup ? "" : `${cellName(picked, position.size)} picked. `;
    this.on.say(`${named}${picking.advice(position, pick, this.hasPointer)}`);
  }

  onCell(cell) {
    if (this.on.cell?.(cell)) return;
    if (!this.view.mayPlay) {
      this.on.say(this.on.status());
      return;
    }
    const found = picking.chooseCell(this.view.position, this.pick, cell);
    if (found.move) this.play(found.move);
    else if (found.pick) this.setPick(found.pick);
    else this.on.refuse(referee.whyNot(this.view.state, this.pick.origin, cell));
  }

  onDrag(from, to) {
    if (!this.view.mayPlay || !picking.stonesToPick(this.view.position).includes(from)) return;
    const picked = { origin: from, target: null };
    const isOpen = picking.cellsToPick(this.view.position, picked).includes(to);
    this.setPick(isOpen ? { origin: from, target: to } : picked);
    if (!isOpen) this.on.refuse(referee.whyNot(this.view.state, from, to));
  }

  onSide(side) {
    const move = picking.chooseSide(this.view.position, this.pick, side);
    if (move) this.play(move);
  }
}
