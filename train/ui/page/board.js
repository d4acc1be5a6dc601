// The board: draws a position and the move in the making, and tells which cell or wall is chosen.

import * as geometry from "./geometry.js";
import * as shapes from "./shapes.js";
import { percent } from "./html.js";
import { cellsToPick, sidesToPick, stageOf, stonesToPick } from "./picking.js";

const { TILE, GAP, STONE, COLOURS, LETTERS } = geometry;
const KEYS = { ArrowUp: 0, ArrowRight: 1, ArrowDown: 2, ArrowLeft: 3 };
const LAYERS = ["ground", "land", "marks", "walls", "stones", "over", "hits", "edges"];

export class Board {
  // `on` has cell(cell), drag(from, to), side(side), edge(place), back(), refuse(reason) and say(text).
  constructor(svg, on) {
    this.svg = svg;
    this.on = on;
    this.size = 0;
    this.focus = 0;
    this.side = null;
    this.grabbed = null;
    this.layers = {};
    svg.addEventListener("keydown", (event) => this.onKey(event));
  }

  // Shows one idea alone, or all of them again for null.
  preview(idea) {
    this.scene.only = idea;
    this.fill("over", this.over(this.stage));
  }

  // scene: { position, pick, active, ideas, hinted, owners, allEdges }; hinted: the cells that a hint marks.
  draw(scene) {
    this.scene = scene;
    if (scene.position.size !== this.size) this.build(scene.position.size);
    const { position, pick } = scene;
    const stage = scene.active ? stageOf(position, pick) : null;
    this.stage = stage;
    if (stage !== "wall") this.side = null;
    this.fill("land", this.land());
    this.fill("marks", this.marks(stage));
    this.fill("walls", position.walls.map(([o, c, p]) => shapes.wall([o, c], p, this.size)));
    this.fill("stones", this.stones());
    this.fill("over", this.over(stage));
    this.fill("edges", this.edges(stage));
    this.label(stage);
  }

  fill(layer, drawn) { this.layers[layer].replaceChildren(...drawn); }

  build(size) {
    this.size = size;
    this.focus = Math.floor(size / 2) * size + Math.floor(size / 2);
    const side = geometry.extent(size);
    this.svg.setAttribute("viewBox", `0 0 ${side} ${side}`);
    this.svg.replaceChildren();
    for (const name of LAYERS) {
      this.layers[name] = shapes.element("g", { class: name });
      this.svg.append(this.layers[name]);
    }
    this.buildGround(size);
    this.hits = [];
    for (let cell = 0; cell < size * size; cell++) this.buildHit(cell);
  }

  buildGround(size) {
    const ground = this.layers.ground;
    for (let index = 0; index < size; index++) {
      const along = geometry.centre(index, size)[0];
      const style = { "font-size": 13, fill: "var(--quiet)", "text-anchor": "middle" };
      ground.append(
        shapes.element("text", { ...style, x: along, y: 14 }, geometry.columnName(index)),
        shapes.element("text", { ...style, x: 9, y: along + 4.5 }, String(index + 1)));
    }
    ground.append(shapes.frame(size));
    for (let cell = 0; cell < size * size; cell++) ground.append(shapes.tile(cell, size, "var(--tile)"));
  }

  buildHit(cell) {
    const [x, y] = geometry.corner(cell, this.size);
    const half = GAP / 2;
    const hit = shapes.element("rect", {
      x: x - half, y: y - half, width: TILE + GAP, height: TILE + GAP, class: "hit",
      role: "button", tabindex: cell === this.focus ? 0 : -1, "data-cell": cell,
    });
    hit.addEventListener("click", () => { this.setFocus(cell); this.on.cell(cell); });
    // A finger that is drawn over the board scrolls the page.
    hit.addEventListener("pointerdown", (event) => { this.grabbed = event.pointerType === "mouse" ? cell : null; });
    hit.addEventListener("pointerup", () => {
      if (this.grabbed !== null && this.grabbed !== cell) this.on.drag(this.grabbed, cell);
      this.grabbed = null;
    });
    hit.addEventListener("focus", () => { this.focus = cell; });
    this.hits.push(hit);
    // Within the cell, so that the walls beside it stay in sight.
    const focus = shapes.element("rect", {
      x: x + 1.5, y: y + 1.5, width: TILE - 3, height: TILE - 3, rx: 4, class: "focus",
    });
    this.layers.hits.append(hit, focus);
  }

  land() {
    const { position, owners } = this.scene, drawn = [];
    for (let cell = 0; cell < this.size ** 2; cell++) {
      if (owners) {
        const chances = owners[cell].slice(0, -1), best = chances.indexOf(Math.max(...chances));
        if (chances[best] > 0.15) drawn.push(shapes.territory(cell, best, this.size, chances[best]));
      } else if (position.owner[cell] >= 0) {
        drawn.push(shapes.territory(cell, position.owner[cell], this.size));
      }
    }
    return drawn;
  }

  marks(stage) {
    const { position, pick } = this.scene, { last } = position, drawn = [];
    if (last && last.origin !== null && last.origin !== last.target) {
      drawn.push(shapes.ring(last.origin, this.size, STONE - 3, {
        stroke: `var(--edges-${last.player})`, "stroke-dasharray": "4 4",
      }));
    }
    if (stage === "wall" && pick.origin !== pick.target) {
      drawn.push(shapes.ring(pick.origin, this.size, STONE - 3, { "stroke-dasharray": "4 4" }),
        shapes.trail(geometry.pathOf(pick.origin, pick.target, position), this.size));
    }
    return drawn;
  }

  stones() {
    const { position, pick } = this.scene, drawn = [];
    position.stones.forEach((cells, player) => cells.forEach((cell) => {
      if (cell < 0) return;
      const at = cell === pick.origin && pick.target !== null ? pick.target : cell;
      drawn.push(shapes.stone(player, at, this.size));
    }));
    if (position.inSetup && pick.target !== null) {
      drawn.push(shapes.stone(position.player, pick.target, this.size, { opacity: 0.6 }));
    }
    return drawn;
  }

  over(stage) {
    const { position, pick, ideas } = this.scene, drawn = [], { last, player } = position;
    if (last && stage !== "wall") {
      drawn.push(shapes.ring(last.target, this.size, STONE + 3.5));
      if (last.side !== null) {
        drawn.push(shapes.outline(geometry.wallOnSide(last.target, last.side, this.size), this.size));
      }
    }
    if (stage === "stone" && !ideas) {
      for (const cell of stonesToPick(position)) {
        drawn.push(shapes.ring(cell, this.size, STONE + 6, {
          stroke: `var(--edges-${player})`, "stroke-dasharray": "3 4", class: "may",
        }));
      }
    }
    if (stage === "cell" || stage === "wall") {
      const at = stage === "wall" ? pick.target : pick.origin;
      drawn.push(shapes.ring(at, this.size, STONE + 5, { "stroke-width": 3 }));
    }
    if (stage === "cell") {
      for (const cell of cellsToPick(position, pick)) {
        if (cell !== pick.origin) drawn.push(shapes.dot(cell, this.size, player));
      }
    }
    const { only, hinted } = this.scene;
    for (const cell of hinted) drawn.push(shapes.ring(cell, this.size, STONE + 5, { "stroke-width": 5, class: "hinted" }));
    return drawn.concat(ideas ? this.drawIdeas(only ? [only] : ideas) : []);
  }

  drawIdeas(ideas) {
    const most = Math.max(...ideas.map((idea) => idea.share), 0.01), drawn = [];
    [...ideas].reverse().forEach((idea) => {
      const bold = Math.max(0.15, Math.min(1, idea.share / most));
      if (idea.origin === null) {
        drawn.push(shapes.stone(this.scene.position.player, idea.target, this.size, { opacity: 0.4 + 0.4 * bold }));
      } else {
        drawn.push(shapes.arrow(geometry.pathOf(idea.origin, idea.target, this.scene.position), this.size, bold));
        drawn.push(shapes.wall(geometry.wallOnSide(idea.target, idea.side, this.size),
          this.scene.position.player, this.size, { opacity: 0.5 + 0.4 * bold }));
      }
    });
    const told = new Set();
    for (const idea of ideas) {
      if (told.has(idea.target)) continue;
      told.add(idea.target);
      const [x, y] = geometry.centre(idea.target, this.size);
      drawn.push(shapes.label(x + this.labelShift(idea, ideas), y + this.labelDrop(idea),
        `${LETTERS[this.scene.position.player]} ${percent(idea.winChance)}`, { "font-size": 11 }));
    }
    return drawn;
  }

  // How far right of its cell's centre an idea's label stands: beside an arrow that goes on up or down.
  labelShift({ target }, ideas) {
    const goesOn = ({ origin, target: end }) => {
      if (origin === null || origin === end) return false;
      const path = geometry.pathOf(origin, end, this.scene.position), at = path.indexOf(target);
      return at > 0 && at < path.length - 1 && Math.abs(path[at + 1] - target) > 1;
    };
    return ideas.some(goesOn) ? 14 : 0;
  }

  // How far below its cell's centre an idea's label stands: clear of the arrow, or of the stone.
  labelDrop({ origin, target }) {
    if (origin === target) return 20;
    if (origin === null) return 15;
    const path = geometry.pathOf(origin, target, this.scene.position), rise = path.at(-2) - target;
    return rise > 1 ? -13 : 15;
  }

  edges(stage) {
    const { position, pick, allEdges } = this.scene;
    if (allEdges) {
      return geometry.innerEdges(this.size).map((place) => {
        const box = geometry.wallBox(place, this.size), wide = 7;
        const hit = shapes.element("rect", {
          x: box.x - (place[0] ? wide : 0), y: box.y - (place[0] ? 0 : wide),
          width: box.width + (place[0] ? 2 * wide : 0), height: box.height + (place[0] ? 0 : 2 * wide),
          class: "edge", "data-edge": place.join(),
        });
        hit.addEventListener("click", () => this.on.edge(place));
        return hit;
      });
    }
    if (stage !== "wall") return [];
    return sidesToPick(position, pick).map((side) => this.wallButton(pick.target, side));
  }

  wallButton(cell, side) {
    const place = geometry.wallOnSide(cell, side, this.size);
    const ghost = shapes.wall(place, this.scene.position.player, this.size);
    ghost.append(shapes.outline(place, this.size, { "stroke-width": 1.5, "stroke-dasharray": "4 3" }));
    const [x, y] = geometry.centre(cell, this.size);
    const half = geometry.PITCH / 2;
    // The half of the cell's own quarter and of its neighbour's: wide enough for a finger.
    const points = [[-half + 4, -half], [-14, -half + 12], [14, -half + 12], [half - 4, -half],
                    [14, -half - 22], [-14, -half - 22]];
    const target = shapes.element("polygon", {
      points: points.map((p) => p.join(",")).join(" "), class: "hit",
      transform: `translate(${x} ${y}) rotate(${90 * side})`,
    });
    const name = `build the wall ${geometry.SIDE_NAMES[side]} ${geometry.cellName(cell, this.size)}`;
    const button = shapes.element("g", {
      class: this.side === side ? "ghost chosen" : "ghost", role: "button", "aria-label": name,
      "data-side": side,
    }, ghost, target);
    button.addEventListener("click", () => this.on.side(side));
    return button;
  }

  label(stage) {
    const { position, pick } = this.scene;
    const own = new Set(stage === "stone" ? stonesToPick(position) : []);
    const targets = new Set(["place", "confirm", "cell"].includes(stage) ? cellsToPick(position, pick) : []);
    const holders = new Map();
    position.stones.forEach((cells, player) => cells.forEach((cell) => holders.set(cell, player)));
    const walled = new Map();
    for (const [orientation, cell] of position.walls) {
      const other = geometry.neighbour(cell, orientation === 0 ? 2 : 1, this.size);
      const words = orientation === 0 ? ["below", "above"] : ["right", "left"];
      walled.set(cell, [...(walled.get(cell) ?? []), words[0]]);
      walled.set(other, [...(walled.get(other) ?? []), words[1]]);
    }
    this.hits.forEach((hit, cell) => {
      const parts = [geometry.cellName(cell, this.size)];
      parts.push(holders.has(cell) ? `${COLOURS[holders.get(cell)]} stone` : "empty");
      if (position.owner[cell] >= 0) parts.push(`${COLOURS[position.owner[cell]]}'s territory`);
      if (walled.has(cell)) parts.push(`walls ${walled.get(cell).join(", ")}`);
      if (own.has(cell)) parts.push("can be picked");
      if (targets.has(cell)) parts.push(cell === pick.origin ? "the stone can stay" : "can go here");
      hit.setAttribute("aria-label", parts.join(", "));
      const may = own.has(cell) || targets.has(cell) || (stage && cell === pick.origin);
      hit.classList.toggle("live", Boolean(may));
    });
  }

  setFocus(cell) {
    this.hits[this.focus].setAttribute("tabindex", -1);
    this.focus = cell;
    this.hits[cell].setAttribute("tabindex", 0);
  }

  onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { position, pick, active, allEdges } = this.scene;
    const stage = active ? stageOf(position, pick) : null;
    if (event.key in KEYS) {
      this.onArrow(KEYS[event.key], stage, event.shiftKey && allEdges);
    } else if (event.key === "Enter" || event.key === " ") {
      if (stage === "wall" && this.side !== null) this.on.side(this.side);
      else this.on.cell(this.focus);
    } else if (event.key === "Escape" || event.key === "Backspace") {
      this.on.back();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  onArrow(side, stage, isEdit) {
    const { position, pick } = this.scene;
    if (isEdit) {
      if (geometry.neighbour(this.focus, side, this.size) !== null) {
        this.on.edge(geometry.wallOnSide(this.focus, side, this.size));
      }
      return;
    }
    if (stage === "wall") {
      if (!sidesToPick(position, pick).includes(side)) {
        this.on.refuse(`No wall can be built ${geometry.SIDE_NAMES[side]} ${geometry.cellName(pick.target, this.size)}`);
        return;
      }
      this.side = side;
      this.fill("edges", sidesToPick(position, pick).map((s) => this.wallButton(pick.target, s)));
      this.on.say(`wall ${geometry.SIDE_NAMES[side]} ${geometry.cellName(pick.target, this.size)}: Enter builds it`);
      return;
    }
    const next = geometry.neighbour(this.focus, side, this.size);
    if (next === null) return;
    this.setFocus(next);
    this.hits[next].focus();
  }
}
