// A game that people and machines play at one board: in play the seats take turns, in analysis any ply can be tried
// anywhere. What people do throws an error, one line, where the game does not allow it.

import { COLOURS } from "./geometry.js";
import * as referee from "./referee.js";
import { GameTree, pathTo } from "./tree.js";

export const PERSON = "person";
export const PLAY = "play", ANALYSE = "analyse";
export const OPEN = "open", SOLVED = "solved", SHOWN = "shown";  // states of a puzzle
const PACE_MS = 300;  // least time of a machine's move, so that people see it
const NO_TIME = "the time is over: analyse, or start a new game";

// The player whom the only person plays, or -1.
export function onlyPerson({ seats }) {
  const player = seats.indexOf(PERSON);
  return player === seats.lastIndexOf(PERSON) ? player : -1;
}

export class Game {
  // tree, seats: PERSON or the machine's level for each colour; machine searches; clocks: null for no limit of time;
  // puzzle: null, or the puzzle that is set here. onChange is called after each change.
  constructor({ tree, seats, machine, clocks = null, mode = PLAY, puzzle = null, pace = PACE_MS }) {
    Object.assign(this, { tree, seats, machine, clocks, mode, pace });
    this.task = puzzle && { puzzle, state: OPEN, tried: [], mover: tree.current.position.player };
    this.tip = tree.current;  // the end of the line that is played
    this.forfeit = null;  // a loss off the board: [player, reason]
    this.evaluates = false;  // whether each position is evaluated
    this.hint = null;  // number of the position that a hint was asked for
    this.hintsAtMove = false;  // whether it shows the move, not the stone alone
    this.error = "";  // why the machine cannot go on until something changes
    this.search = null;  // what the machine searches, while it does
    this.review = null;  // progress, then findings, of the latest review
    this.mistake = null;  // number of the position after the mistake of it that is to be played better
    this.asksMachine = true;  // one tab of several that show a game asks
    this.onChange = () => {};
    this.isClosed = false;
    this.alarm = null;
  }

  // Shows and times the game from now on.
  open(onChange) {
    this.onChange = onChange;
    this.machine.prepare(this);
    this.setClocks();
    this.goOn();
  }

  // Nothing is searched or timed for it any more.
  close() {
    this.isClosed = true;
    this.onChange = () => {};
    clearTimeout(this.alarm);
    this.search?.stop();
  }

  // The state of the game.

  get isOver() { return this.forfeit !== null || this.tip.position.isOver; }

  // Whether the machine moves next, without being asked.
  get isMachinesTurn() { return this.mode === PLAY && !this.isOver && this.seats[this.tip.position.player] !== PERSON; }

  // Whether a person may play in the current position.
  get mayPlay() {
    if (this.mode === ANALYSE) return !this.tree.current.position.isOver;
    return this.tree.current === this.tip && !this.isOver && !this.isMachinesTurn;
  }

  // Whether a puzzle waits for its solution: nothing is evaluated, and wrong moves are not played.
  get isPosed() { return this.task !== null && this.task.state === OPEN; }

  // Whether the game was lost on time, so that nobody can play on.
  get isTimeOver() { return this.clocks !== null && this.forfeit !== null && this.clocks.left(this.forfeit[0]) <= 0; }

  // What people do.

  // Plays a person's move, in any notation, in the current position.
  play(move) {
    if (!this.mayPlay) throw new Error(this.whyNotPlay());
    const { current } = this.tree, action = referee.read(current.state, move);
    if (!this.isPosed) {
      this.move(current, action);
    } else {
      referee.play(current.state, action);  // throws where the move is not allowed
      const { task } = this, text = referee.write(action, current.position.size);
      if (action === referee.read(current.state, task.puzzle.solution)) this.solve(SOLVED);
      else task.tried = [...task.tried.filter((each) => each !== text), text];
    }
    this.changed();
  }

  // Gives a puzzle up: its solution is played.
  showSolution() {
    if (!this.isPosed) throw new Error("there is no puzzle to solve");
    this.solve(SHOWN);
    this.changed();
  }

  // Takes back to where a person last chose; in analysis, one ply.
  takeBack() {
    this.refuseInPuzzle();
    const isPlay = this.mode === PLAY;
    if (isPlay && this.isTimeOver) throw new Error(NO_TIME);
    let node = isPlay ? this.tip : this.tree.current;
    if (isPlay && this.seats.includes(PERSON)) {
      while (node.mover !== null && this.seats[node.mover] !== PERSON) node = node.parent;
    }
    if (!node.parent && !(isPlay && this.forfeit)) throw new Error("there is no move of yours to take back");
    const isOfGame = isPlay || pathTo(this.tip).includes(node);
    if (node.parent) {
      this.tree.remove(node);
      this.tree.current = node.parent;
      if (isOfGame) this.tip = node.parent;
    }
    if (isOfGame && !this.isTimeOver) this.forfeit = null;
    this.changed();
  }

  // Looks at another position.
  go(number) {
    this.tree.current = this.tree.node(number);
    this.changed();
  }

  // Names the players, on the board and in files.
  rename(names) {
    this.tree.names = names;
    this.changed();
  }

  // Takes a variation out of the tree.
  remove(number) {
    const node = this.tree.node(number), isOfGame = pathTo(this.tip).includes(node);
    if (this.mode === PLAY && isOfGame) throw new Error("these moves are the game; take them back, or analyse first");
    this.tree.remove(node);
    if (isOfGame) this.tip = node.parent;
    this.changed();
  }

  // Turns to analysis, or plays on from the current position.
  setMode(mode) {
    this.refuseInPuzzle();
    if (mode === PLAY && this.mode === ANALYSE) {
      if (this.tree.current !== this.tip) {
        if (this.isTimeOver) throw new Error(NO_TIME);
        this.forfeit = null;
      }
      this.tip = this.tree.current;
      this.tree.promote(this.tip);
      this.tree.names = null;
    }
    this.mode = mode;
    this.changed();
  }

  // The player who would give the game up: a person to move, or the first person; null where there is none.
  get resigner() {
    const mover = this.tip.position.player;
    const first = this.seats.indexOf(PERSON);
    if (this.isOver || first < 0 || this.mode === ANALYSE) return null;
    return this.seats[mover] === PERSON ? mover : first;
  }

  // Gives the game up for that player.
  resign() {
    this.refuseInPuzzle();
    if (this.resigner === null) throw new Error("there is no game that a person could resign");
    this.forfeit = [this.resigner, "resigned"];
    this.changed();
  }

  // Names the stone of a good move; asked again the move, and then nothing any more.
  askHint() {
    this.refuseInPuzzle();
    const { number, position } = this.tree.current;
    if (position.isOver) throw new Error("the game is over: there is no move to hint at");
    const isNew = this.hint !== number;
    this.hint = isNew || !this.hintsAtMove ? number : null;
    this.hintsAtMove = !isNew && !this.hintsAtMove;
    this.changed();
  }

  // Evaluates each position from now on, or stops.
  showEvaluation(isShown) {
    this.evaluates = isShown;
    this.changed();
  }

  // Has the line that is played reviewed; in analysis the line that is looked at, to its end.
  async askReview() {
    this.refuseInPuzzle();
    if (this.review?.isRunning) throw new Error("a review of this game is being made");
    const line = this.reviewedLine();
    if (line.length < 2) throw new Error("there is no move to review");
    const positions = line.filter((node) => !node.position.isOver).length, began = performance.now();
    const review = { tip: line.at(-1).number, isRunning: true, positions, began, share: 0, accuracy: [], name: "", error: "" };
    const tell = (fields) => {
      Object.assign(review, fields);
      this.onChange();
    };
    this.review = review;
    tell({});
    try {
      const found = await this.machine.review(this, line, (share) => { review.share = share; });
      for (const [place, node] of line.entries()) {
        if (place) node.mark = found.marks[place - 1];
        if (!node.position.isOver) node.note(found.reports[place]);  // The page has one chance for a position.
      }
      tell({ isRunning: false, share: 1, name: found.name, accuracy: found.accuracy });
    } catch (error) {
      tell({ isRunning: false, error: error.message });
    }
  }

  reviewedLine() {
    if (this.mode === PLAY) return pathTo(this.tip);
    const line = pathTo(this.tree.current);
    while (line.at(-1).children.length) line.push(line.at(-1).children[0]);
    return line;
  }

  // The course of the game.

  whyNotPlay() {
    const { current } = this.tree;
    if (current.position.isOver || this.isOver) return "the game is over";
    if (current !== this.tip) return "this is an earlier position: go to the last move, or analyse";
    return `${COLOURS[current.position.player]} is played by the machine`;
  }

  refuseInPuzzle() {
    if (this.isPosed) throw new Error("this is a puzzle: find the move that wins, or show the solution first");
  }

  // Plays the line of the puzzle's solution, and looks at the position after its first move.
  solve(state) {
    this.task.state = state;
    this.mode = ANALYSE;
    this.tree.current = this.tip;
    for (const move of this.task.puzzle.line) {
      if (this.tree.current.position.isOver) break;
      this.tree.play(referee.read(this.tree.current.state, move));
    }
    const [first] = this.tip.children;
    this.tip = this.tree.current;
    this.tree.current = first;
  }

  move(before, action) {
    const node = this.tree.add(before, action);
    if (this.tree.current === before) this.tree.current = node;
    if (this.mode !== PLAY) return;
    this.tip = node;
    this.clocks?.moved(before.position.player);
  }

  // Goes on after an action of a person; the machine may be able to, again.
  changed() {
    this.error = "";
    this.update();
  }

  update() {
    if (this.isClosed) return;
    if (this.hint !== this.tree.current.number) this.hint = null;  // Not shown again until it is asked.
    this.setClocks();
    this.onChange();
    this.goOn();
  }

  setClocks() {
    clearTimeout(this.alarm);
    if (!this.clocks) return;
    // Nobody's time runs before the first move.
    if (this.mode === ANALYSE || this.isOver || !this.tip.parent) {
      this.clocks.stop();
      return;
    }
    const mover = this.tip.position.player;
    this.clocks.start(mover);
    this.alarm = setTimeout(() => this.checkTime(), 1000 * this.clocks.left(mover) + 10);
  }

  checkTime() {
    const { running } = this.clocks;
    if (running !== null && this.clocks.left(running) <= 0) this.forfeit = [running, "ran out of time"];
    this.update();
  }

  // What to search next: the position, simulations and temperature, and whether to move there; or null.
  nextSearch() {
    const node = this.tree.current, { hint, glance } = this.machine;
    if (this.error || this.isPosed || this.isClosed) return null;
    if (this.isMachinesTurn) {
      if (!this.asksMachine) return null;
      return { node: this.tip, isMove: true, ...this.machine.level(this.seats[this.tip.position.player]) };
    }
    if (node.position.isOver) return null;
    const done = node.report?.simulations ?? 0;
    if (this.isAwaited(node) && done < hint) return { node, isMove: false, simulations: hint, temperature: 0 };
    if (this.evaluates && done < glance) return { node, isMove: false, simulations: glance, temperature: 0 };
    return null;
  }

  // Whether somebody waits for the search of a position: for a hint, or to know what a move is worth in place of a mistake.
  isAwaited(node) {
    const mistake = this.tree.nodes.get(this.mistake);
    return this.hint === node.number || (mistake !== undefined && node !== mistake && node.parent === mistake.parent);
  }

  // Searches while there is something to search; a search that nobody waits for any more is stopped.
  goOn() {
    const next = this.nextSearch(), { search } = this;
    const same = (one, other) => one && other && ["node", "isMove", "simulations"].every((key) => one[key] === other[key]);
    if (search && !same(search, next)) search.stop();
    if (search || !next) return;
    this.run(next);
  }

  async run(next) {
    let isStopped = false;
    const began = performance.now(), { node, isMove } = next;
    const search = { ...next, began, isAwaited: isMove || this.isAwaited(node) };
    const running = this.machine.search(this, next, (progress) => { Object.assign(search, progress); });
    search.stop = () => {
      if (!isStopped) running.stop();
      isStopped = true;
    };
    this.search = search;
    this.onChange();
    try {
      const report = await running.report;
      const rest = this.pace - (performance.now() - began);
      if (isMove && rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
      // People may have changed everything since.
      if (!isStopped) node.note(report);
      if (!isStopped && isMove && node === this.tip && this.isMachinesTurn) this.move(node, report.action);
    } catch (error) {
      if (!isStopped) this.error = error.message;
    }
    this.search = null;
    this.update();
  }
}
