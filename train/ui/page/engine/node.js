// The engine as a program: `node node.js FOLDER [SIMULATIONS] [--fresh]` answers the requests of docs/engine.md line by line,
// by the models in a folder that `export --web` wrote; `--fresh` searches each position anew, as matches do.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { Protocol } from "./protocol.js";

const words = process.argv.slice(2), isFresh = words.includes("--fresh");
const [folder, simulations = "64"] = words.filter((word) => word !== "--fresh");
const read = (name) => readFileSync(`${folder}/${name}`);

function load(path) {
  const bytes = read(`${path}.bin`);
  return { card: JSON.parse(read(`${path}.json`)), bytes: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) };
}

const settings = JSON.parse(read("engine.json"));
const protocol = new Protocol({ ...settings, simulations: Number(simulations), keepsTrees: !isFresh }, load);
const write = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  protocol.answer(JSON.parse(line), write).then(write);
}
