// The network, from a position to logits and values: train/network in plain loops over Float32Array.
//
// Features are rows of numbers, one a cell, and one more row of zeros that stands for all that lies beyond a border or a
// closed gate. A layer of any kind is one `mix`: each cell sums a matrix times the row of each of its sources.
//
// API: readModel(card, bytes), makeNetwork(model, variant).

import { MAX_GRID, MOVE_OFFSETS, PLAYS_PER_STONE, inSetup } from "./rules.js";
import { channels, makeObserver } from "./planes.js";

const POLICY_PLANES = PLAYS_PER_STONE + 1;
const BATCH_EPSILON = 1e-5;
const LAYER_EPSILON = 1e-6;
const BIAS_CENTRE = 8;
const BIAS_SPAN = 17;

/**
 * Arrays by name, of a file that `export --web` writes.
 * @param {{arrays: {name: string, shape: number[], type: "float16" | "float32", offset: number}[]}} card
 * @param {ArrayBuffer} bytes
 */
export function readModel(card, bytes) {
  const arrays = new Map();
  for (const { name, shape, type, offset } of card.arrays) {
    const size = shape.reduce((product, length) => product * length, 1);
    const data = type === "float32" ? new Float32Array(bytes.slice(offset, offset + 4 * size)) : fromHalves(new Uint16Array(bytes.slice(offset, offset + 2 * size)));
    arrays.set(name, { shape, data });
  }
  return { card, arrays };
}

function fromHalves(halves) {
  return Float32Array.from(halves, (half) => {
    const exponent = half >> 10 & 31, fraction = half & 1023;
    const size = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
    return half >> 15 ? -size : size;
  });
}

const WIDE = 8;
const padded = (numbers) => Math.ceil(numbers / WIDE) * WIDE;

/**
 * Matrices [taps][inputs][numbers] in the order in which `mix` reads them: WIDE columns at a time.
 * @returns {{weights: Float32Array, bias: Float32Array, taps: number, inputs: number, numbers: number}} numbers padded
 */
function pack(data, taps, rows, columns, inputs = padded(rows)) {
  const numbers = padded(columns);
  const weights = new Float32Array(taps * inputs * numbers);
  for (let tap = 0; tap < taps; tap++) {
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const block = Math.floor(column / WIDE) * taps + tap;
        weights[(block * inputs + row) * WIDE + column % WIDE] = data[(tap * rows + row) * columns + column];
      }
    }
  }
  return { weights, bias: new Float32Array(numbers), taps, inputs, numbers };
}

let places = new Int32Array(0);
const ends = new Int32Array(MAX_GRID ** 2);

/**
 * out[cell] = bias + sum over taps of matrix[tap] times from[sources[cell * taps + tap]].
 * More than half of all features are zero: only the others are multiplied, each with eight numbers at once.
 */
function mix(from, sources, cells, { weights, bias, taps, inputs, numbers }, out) {
  if (places.length < from.length) places = new Int32Array(from.length);
  let count = 0;
  for (let row = 0; row < cells; row++) {
    for (let place = row * inputs; place < (row + 1) * inputs; place++) if (from[place] !== 0) places[count++] = place;
    ends[row] = count;
  }
  for (let number = 0; number < numbers; number += WIDE) {
    for (let cell = 0; cell < cells; cell++) {
      let a = bias[number], b = bias[number + 1], c = bias[number + 2], d = bias[number + 3];
      let e = bias[number + 4], f = bias[number + 5], g = bias[number + 6], h = bias[number + 7];
      for (let tap = 0; tap < taps; tap++) {
        const row = sources[cell * taps + tap];
        if (row === cells) continue;
        const first = (number * taps + tap * WIDE - row * WIDE) * inputs;
        for (let i = row ? ends[row - 1] : 0; i < ends[row]; i++) {
          const place = places[i], x = from[place], at = first + place * WIDE;
          a += x * weights[at];
          b += x * weights[at + 1];
          c += x * weights[at + 2];
          d += x * weights[at + 3];
          e += x * weights[at + 4];
          f += x * weights[at + 5];
          g += x * weights[at + 6];
          h += x * weights[at + 7];
        }
      }
      const to = cell * numbers + number;
      out[to] = a;
      out[to + 1] = b;
      out[to + 2] = c;
      out[to + 3] = d;
      out[to + 4] = e;
      out[to + 5] = f;
      out[to + 6] = g;
      out[to + 7] = h;
    }
  }
}

/** out = bias + vector times matrix [inputs, numbers]. */
function multiply(vector, { shape: [inputs, numbers], data }, bias) {
  const out = new Float32Array(numbers);
  for (let number = 0; number < numbers; number++) {
    let sum = bias ? bias[number] : 0;
    for (let input = 0; input < inputs; input++) sum += vector[input] * data[input * numbers + number];
    out[number] = sum;
  }
  return out;
}

function relu(x) {
  for (let i = 0; i < x.length; i++) if (x[i] < 0) x[i] = 0;
}

export function softmax(logits, length = logits.length) {
  let largest = -Infinity, sum = 0;
  for (let i = 0; i < length; i++) if (logits[i] > largest) largest = logits[i];
  const chances = new Float32Array(length);
  for (let i = 0; i < length; i++) sum += chances[i] = Math.exp(logits[i] - largest);
  for (let i = 0; i < length; i++) chances[i] /= sum;
  return chances;
}

/**
 * A network on one board; throws the name of what it does not know.
 * @param {ReturnType<typeof readModel>} model
 * @param {import("./rules.js").Variant} variant of a board that fills its grid
 * @returns {{look: Function, evaluate: Function}} `look(position)` gives the outputs of all heads, `evaluate(position,
 *   slots, count)` what a search asks: logits of the slots, and values from the player to move on
 */
export function makeNetwork({ card, arrays }, variant) {
  const config = card.network, { width } = config, { cells, players, size } = variant;
  if (card.players !== players) throw new Error(`network: is for ${card.players} players, not ${players}`);
  for (const key of ["custom", "custom_planes"]) if (config[key]) throw new Error(`network: ${key} is made in Python alone`);
  const table = channels(config.planes, players, config.playable);
  const observe = makeObserver(variant, table);
  const features = padded(width), rows = (numbers) => new Float32Array((cells + 1) * numbers);
  const array = (name) => arrays.get(`params.${name}`);
  const planes = rows(table.length), own = Int16Array.from({ length: cells }, (_, cell) => cell);
  const around = neighbourhood(variant), gated = new Int16Array(cells * 5), spare = [rows(features), rows(features)];
  const isPlain = config.norm === "none";

  /** A layer of taps, with the batch norm behind it folded in. */
  function layer(name, taps, norm, inputs) {
    const { shape, data } = array(`${name}.kernel`), [from, to] = shape.slice(-2);
    const made = pack(data, taps, from, to, inputs), bias = array(`${name}.bias`);
    if (bias) made.bias.set(bias.data);
    const mean = norm && arrays.get(`batch_stats.${norm}.norm.mean`);
    if (!mean) return made;
    const [scale, shift] = [array(`${norm}.norm.scale`).data, array(`${norm}.norm.bias`).data], { data: variance } = arrays.get(`batch_stats.${norm}.norm.var`);
    for (let number = 0; number < to; number++) {
      const factor = scale[number] / Math.sqrt(variance[number] + BATCH_EPSILON);
      made.bias[number] = shift[number] + (made.bias[number] - mean.data[number]) * factor;
      for (let i = 0; i < taps * made.inputs; i++) made.weights[(Math.floor(number / WIDE) * taps * made.inputs + i) * WIDE + number % WIDE] *= factor;
    }
    return made;
  }

  /** A norm of each cell's features, in place; nothing for norms that are folded in. */
  function layerNorm(name) {
    const scale = array(`${name}.scale`), shift = array(`${name}.bias`);
    return (x, out = x) => {
      for (let at = 0; at < cells * features; at += features) {
        let mean = 0, square = 0;
        for (let i = at; i < at + width; i++) mean += x[i] / width;
        for (let i = at; i < at + width; i++) square += (x[i] - mean) ** 2 / width;
        const factor = 1 / Math.sqrt(square + LAYER_EPSILON);
        for (let i = 0; i < width; i++) out[at + i] = (x[at + i] - mean) * factor * scale.data[i] + shift.data[i];
      }
    };
  }

  const blockNorm = (name) => (config.norm === "layer" ? layerNorm(`${name}.norm`) : () => {});

  /** R and W blocks: (x) => x + second(relu(first(x))), with norms, in place. */
  function residual(name, kind) {
    const isWalled = kind === "W";
    const names = isWalled ? ["conv", "walled"] : ["conv1", "conv2"];
    const first = layer(`${name}.${names[0]}`, 9, `${name}.norm1`);
    const second = layer(`${name}.${names[1]}`, isWalled ? 5 : 9, `${name}.norm2`);
    const [norm1, norm2] = [blockNorm(`${name}.norm1`), blockNorm(`${name}.norm2`)];
    const scale = isPlain ? array(`${name}.scale`).data[0] : 1;
    const [y, z] = spare;
    return (x) => {
      mix(x, around, cells, first, y);
      norm1(y);
      relu(y);
      mix(y, isWalled ? gated : around, cells, second, z);
      norm2(z);
      for (let i = 0; i < cells * features; i++) x[i] = Math.max(0, x[i] + scale * z[i]);
    };
  }

  /** Pre-norm attention over the cells and an MLP, in place. */
  function transformer(name) {
    const { heads } = config, depth = width / heads, hidden = array(`${name}.expand.kernel`).shape[1];
    const [norm1, norm2] = [layerNorm(`${name}.norm1`), layerNorm(`${name}.norm2`)];
    const [project, merge] = ["query_key_value", "merge_heads"].map((part) => layer(`${name}.${part}`, 1));
    const [expand, contract] = [layer(`${name}.expand`, 1), layer(`${name}.contract`, 1, null, padded(hidden))];
    const [y, z] = spare, three = rows(project.numbers), wide = rows(padded(hidden));
    const offsets = array(`${name}.offset_bias`).data;
    const offset = (from, to) => (Math.floor(to / size) - Math.floor(from / size) + BIAS_CENTRE) * BIAS_SPAN + (to % size) - (from % size) + BIAS_CENTRE;
    return (x) => {
      norm1(x, y);
      mix(y, own, cells, project, three);
      z.fill(0);
      const scores = new Float32Array(cells);
      for (let head = 0; head < heads; head++) {
        for (let from = 0; from < cells; from++) {
          const query = from * project.numbers + head * depth;
          for (let to = 0; to < cells; to++) {
            const key = to * project.numbers + width + head * depth;
            let sum = 0;
            for (let i = 0; i < depth; i++) sum += three[query + i] * three[key + i];
            scores[to] = sum / Math.sqrt(depth) + offsets[head * BIAS_SPAN ** 2 + offset(from, to)];
          }
          const shares = softmax(scores);
          for (let to = 0; to < cells; to++) {
            const value = to * project.numbers + 2 * width + head * depth;
            for (let i = 0; i < depth; i++) z[from * features + head * depth + i] += shares[to] * three[value + i];
          }
        }
      }
      mix(z, own, cells, merge, y);
      for (let i = 0; i < cells * features; i++) x[i] += y[i];
      norm2(x, y);
      mix(y, own, cells, expand, wide);
      for (let i = 0; i < cells * padded(hidden); i++) wide[i] = gelu(wide[i]);
      mix(wide, own, cells, contract, y);
      for (let i = 0; i < cells * features; i++) x[i] += y[i];
    };
  }

  function readGates(position) {
    for (let cell = 0; cell < cells; cell++) {
      const open = position.exits[cell];
      gated[cell * 5] = cell;
      for (let side = 0; side < 4; side++) gated[cell * 5 + 1 + side] = open >> side & 1 ? variant.neighbours[cell * 4 + side] : cells;
    }
  }

  /** Numbers for each cell: (x, pooled) -> rows of `numbers`. */
  function cellHead(name) {
    const here = layer(`${name}.here`, 1), bias = here.bias.slice(), everywhere = array(`${name}.everywhere.kernel`);
    const out = rows(here.numbers);
    return (x, pooled) => {
      here.bias.set(multiply(pooled, everywhere, bias));
      mix(x, own, cells, here, out);
      return { data: out, numbers: here.numbers };
    };
  }

  function boardHead(name) {
    const [hidden, last] = ["hidden", "last"].map((part) => ({ kernel: array(`${name}.${part}.kernel`), bias: array(`${name}.${part}.bias`).data }));
    return (pooled) => {
      const y = multiply(pooled, hidden.kernel, hidden.bias);
      relu(y);
      return multiply(y, last.kernel, last.bias);
    };
  }

  /** Mean and maximum over the cells. */
  function pool(x) {
    const pooled = new Float32Array(2 * width);
    for (let i = 0; i < width; i++) {
      let sum = 0, largest = -Infinity;
      for (let at = i; at < cells * features; at += features) {
        sum += x[at];
        if (x[at] > largest) largest = x[at];
      }
      pooled[i] = sum / cells;
      pooled[width + i] = largest;
    }
    return pooled;
  }

  /** Adds the logits of the cells where moves end to the policy. */
  function addDestinations(policy, x, pooled) {
    const walls = destination(x, pooled);
    for (let cell = 0; cell < cells; cell++) {
      for (let move = 0; move < MOVE_OFFSETS.length; move++) {
        const end = variant.ends[cell * MOVE_OFFSETS.length + move];
        for (let side = 0; side < 4 && end >= 0; side++) {
          policy[cell * POLICY_PLANES + move * 4 + side] += walls.data[end * walls.numbers + side];
        }
      }
    }
  }

  const stem = layer("stem.conv", 9, "stem.norm", table.length), stemNorm = blockNorm("stem.norm"), x = rows(features);
  const blocks = [...card.blocks].map((kind, place) => (kind === "T" ? transformer(`blocks.${place}`) : residual(`blocks.${place}`, kind)));
  const optional = (name, make) => (array(`${name}.here.kernel`) ?? array(`${name}.hidden.kernel`) ? make(name) : null);
  const [policyHead, valueHead, ownershipHead] = [cellHead("policy"), boardHead("value"), optional("ownership", cellHead)];
  const [marginHead, destination] = [optional("margin", boardHead), optional("destination", cellHead)];

  /**
   * The outputs of the heads; values, owners and margin are those of players from the one to move on.
   * @param {import("./rules.js").Position} position
   */
  function look(position, wantsAll = true) {
    observe(position, config.mover_first ? position.player : 0, planes);
    readGates(position);
    mix(planes, around, cells, stem, x);
    stemNorm(x);
    relu(x);
    for (const block of blocks) block(x);
    const pooled = pool(x), made = policyHead(x, pooled), policy = new Float32Array(cells * POLICY_PLANES);
    for (let cell = 0; cell < cells; cell++) policy.set(made.data.subarray(cell * made.numbers, cell * made.numbers + POLICY_PLANES), cell * POLICY_PLANES);
    if (destination) addDestinations(policy, x, pooled);
    const values = expectedRewards(valueHead(pooled));
    if (!wantsAll) return { policy, values };
    const land = ownershipHead?.(x, pooled);
    const owners = land ? Array.from({ length: cells }, (_, cell) => softmax(land.data.subarray(cell * land.numbers), players + 1)) : null;
    return { policy, values, owners, margin: marginHead ? marginHead(pooled)[0] * size ** 2 : null };
  }

  function expectedRewards(numbers) {
    if (config.value === "wdl") {
      const chances = softmax(numbers).subarray(0, players), all = chances.reduce((sum, chance) => sum + chance, 0);
      return chances.map((chance) => chance - (all - chance) / (players - 1));
    }
    return players === 2 ? Float32Array.of(Math.tanh(numbers[0]), -Math.tanh(numbers[0])) : numbers.map(Math.tanh);
  }

  function evaluate(position, slots, count) {
    const { policy, values } = look(position, false), first = position.player * variant.stones, logits = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      const slot = slots[i];
      logits[i] = inSetup(variant, position) ? policy[slot * POLICY_PLANES + PLAYS_PER_STONE]
        : policy[position.stones[first + Math.floor(slot / PLAYS_PER_STONE)] * POLICY_PLANES + slot % PLAYS_PER_STONE];
    }
    return { logits, values };
  }

  return { look, evaluate };
}

/** The sources of a convolution by 3x3 cells: row by row, the row of zeros beyond the border. */
function neighbourhood({ size, cells }) {
  const sources = new Int16Array(cells * 9);
  for (let i = 0; i < sources.length; i++) {
    const cell = Math.floor(i / 9), row = Math.floor(cell / size) + Math.floor(i % 9 / 3) - 1, column = cell % size + i % 3 - 1;
    sources[i] = row >= 0 && row < size && column >= 0 && column < size ? row * size + column : cells;
  }
  return sources;
}

function gelu(x) { return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))); }
