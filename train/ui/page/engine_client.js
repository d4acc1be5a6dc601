// The engine as the page sees it: requests of docs/engine.md, each answered by a promise. The other side is a worker of
// this page, the server over a WebSocket, or a notebook's Python.

const ANSWERS = {
  start_game_session: "game_session_started", evaluate_position: "evaluate_response", apply_move: "move_applied",
  stop_search: "search_stopped", end_game_session: "game_session_ended", review_game: "game_reviewed",
};
const RETRY_MS = 1000;

// The other side went away before it answered; whoever asked may ask again.
export class Lost extends Error {}

export class EngineClient {
  // open(client) begins to connect: it calls client.connected(post), client.received(message) and client.lost().
  // onState takes true when connected and false when lost.
  constructor(open, onState = () => {}) {
    this.onState = onState;
    this.asked = new Map();  // by session and type of the answer; a session has one question of a type at a time
    this.whenConnected = new Promise((resolve) => { this.connect = resolve; });
    open(this);
  }

  connected(post) {
    this.post = post;
    this.connect();
    this.onState(true);
  }

  lost() {
    this.whenConnected = new Promise((resolve) => { this.connect = resolve; });
    const asked = [...this.asked.values()];
    this.asked.clear();
    this.post = null;
    for (const { reject } of asked) reject(new Lost("the engine does not answer"));
    this.onState(false);
  }

  // The response to a request, as soon as there is a connection. onProgress takes what comes before it.
  async ask(request, onProgress = () => {}) {
    await this.whenConnected;
    return new Promise((resolve, reject) => {
      this.asked.set(`${request.bgsId} ${ANSWERS[request.type]}`, { resolve, reject, onProgress });
      this.post(request);
    });
  }

  received(message) {
    const { type, bgsId } = message, own = `${bgsId} `;
    const meant = (key) => type === "progress" || type === "error" ? key.startsWith(own) : key === own + type;
    for (const [key, asked] of [...this.asked].filter(([key]) => meant(key))) {
      if (type === "progress") {
        asked.onProgress(message);
        continue;
      }
      this.asked.delete(key);
      if (message.success) asked.resolve(message);
      else asked.reject(new Error(message.error));
    }
  }
}

// The server's engine; it is connected again when it is lost.
export function overSocket(address) {
  return function open(client) {
    const socket = new WebSocket(address);
    socket.addEventListener("open", () => client.connected((request) => socket.send(JSON.stringify(request))));
    socket.addEventListener("message", (event) => client.received(JSON.parse(event.data)));
    socket.addEventListener("close", () => {
      client.lost();
      setTimeout(() => open(client), RETRY_MS);
    });
  };
}

// An engine in a thread of the page; settings are what it needs to know before it is asked.
export function inWorker(address, settings) {
  return (client) => {
    const worker = new Worker(address, { type: "module" });
    worker.addEventListener("message", (event) => client.received(event.data));
    worker.addEventListener("error", (event) => {
      console.error(event.message);
      client.lost();
    });
    worker.postMessage({ type: "settings", ...settings });
    client.connected((request) => worker.postMessage(request));
  };
}
