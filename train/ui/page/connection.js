// The WebSocket to the server: it sends messages, and opens itself again when it is lost.

const RETRY_MS = 1000;

export class Connection {
  // onMessage takes each message; onState takes true when connected and false when lost.
  constructor(onMessage, onState) {
    this.onMessage = onMessage;
    this.onState = onState;
    this.socket = null;
    this.connect();
  }

  connect() {
    const socket = new WebSocket(`ws://${location.host}/socket`);
    this.socket = socket;
    socket.addEventListener("open", () => this.onState(true));
    socket.addEventListener("message", (event) => this.onMessage(JSON.parse(event.data)));
    socket.addEventListener("close", () => {
      this.onState(false);
      setTimeout(() => this.connect(), RETRY_MS);
    });
  }

  send(type, fields = {}) {
    if (this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify({ type, ...fields }));
    return true;
  }
}
