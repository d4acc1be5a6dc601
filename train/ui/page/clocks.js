// Chess clocks: time for a whole game, and an increment after each move. At most one of them runs.

export class Clocks {
  // settings: minutes and increment (seconds); left: seconds of each player; now returns seconds.
  constructor(settings, left, now = () => performance.now() / 1000) {
    this.settings = settings;
    this.seconds = left;
    this.now = now;
    this.running = null;
    this.since = 0;
  }

  // Seconds that a player has left, 0 once the time is over.
  left(player) {
    const passed = player === this.running ? this.now() - this.since : 0;
    return Math.max(0, this.seconds[player] - passed);
  }

  start(player) {
    if (player === this.running) return;
    this.stop();
    this.running = player;
    this.since = this.now();
  }

  stop() {
    if (this.running !== null) this.seconds[this.running] = this.left(this.running);
    this.running = null;
  }

  // A move was made: its player's increment is added.
  moved(player) {
    if (this.running !== null) this.seconds[player] += this.settings.increment;
  }
}
