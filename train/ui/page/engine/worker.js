// The engine in a thread of the page: the first message holds the settings, each further one is a request of docs/engine.md.

import { Protocol } from "./protocol.js";
import "../referee.js";  // The protocol reads diagrams by it, also once there is no network any more.

let protocol = null;

self.onmessage = async ({ data }) => {
  if (data.type === "settings") protocol = new Protocol(data, load);
  else self.postMessage(await protocol.answer(data, (message) => self.postMessage(message)));
};

/** A model of the page's folder. */
async function load(path) {
  const get = async (ending) => {
    const response = await fetch(new URL(`../${path}.${ending}`, import.meta.url));
    if (!response.ok) throw new Error(`${path}.${ending}: ${response.status} ${response.statusText}`);
    return response;
  };
  const [card, bytes] = await Promise.all([get("json"), get("bin")]);
  return { card: await card.json(), bytes: await bytes.arrayBuffer() };
}
