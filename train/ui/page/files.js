// Games from files and to files: records, moves, HKOI codes, diagrams; links and pictures.

import { $, make } from "./html.js";
import { writeLink } from "./link.js";
import { pictureOf } from "./picture.js";
import { writeGame } from "./saving.js";

const MAX_CHARACTERS = 500_000;

export class Files {
  // on has load(text), say(text), game() and board().
  constructor(on) {
    this.on = on;
    this.dialog = $("#load");
    $("#load-cancel").addEventListener("click", () => this.dialog.close());
    $("#load-file").addEventListener("change", () => this.readFile());
    $("#load form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.take($("#load-text").value);
    });
    $("#save-cancel").addEventListener("click", () => $("#save-dialog").close());
    $("#save-record").addEventListener("click", () => this.download(writeGame(on.game())));
    $("#save-picture").addEventListener("click", () => this.download({ name: "wallgo.svg", text: pictureOf(on.board()) }));
    $("#save-copy").addEventListener("click", () => this.copyLink());
    const main = document.body;
    main.addEventListener("dragover", (event) => event.preventDefault());
    main.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files.length) this.read(event.dataTransfer.files[0]);
    });
  }

  open() {
    $("#load-games").hidden = true;
    $("#load-error").textContent = "";
    this.dialog.showModal();
  }

  openSave() {
    const { origin, pathname, search } = location, page = origin === "null" ? "" : `${origin}${pathname}${search}`;
    $("#save-link").value = `${page}#${writeLink(this.on.game())}`;
    $("#save-told").textContent = "";
    $("#save-dialog").showModal();
  }

  download(file) {
    $("#save-dialog").close();
    download(file.name, file.text);
  }

  async copyLink() {
    $("#save-link").select();
    try {
      await navigator.clipboard.writeText($("#save-link").value);
      $("#save-told").textContent = "Copied.";
    } catch {
      $("#save-told").textContent = "Copy it with your browser: it is selected.";
    }
  }

  readFile() {
    const [file] = $("#load-file").files;
    if (file) this.read(file);
    $("#load-file").value = "";
  }

  async read(file) {
    try {
      const stream = file.name.endsWith(".gz")
        ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
      this.take(await new Response(stream).text());
    } catch (error) {
      this.complain(`${file.name}: cannot be read: ${error.message}`);
    }
  }

  // What is wrong is told in the dialog, which hides the page's own messages.
  complain(text) {
    if (this.dialog.open) $("#load-error").textContent = text;
    else this.on.say(text);
  }

  // A record file of several games asks which one.
  take(text) {
    const lines = text.split("\n").filter((line) => line.trim());
    if (lines.length > 1 && lines.every((line) => line.trimStart().startsWith("{"))) {
      this.choose(lines);
    } else {
      this.send(text);
    }
  }

  choose(lines) {
    const box = $("#load-games");
    box.hidden = false;
    box.replaceChildren(make("p", {}, `${lines.length} games; open one:`),
      make("div", { class: "games" }, ...lines.slice(0, 1000).map((line, index) => make("button", {
        type: "button", onclick: () => this.send(line),
      }, `${index + 1}. ${about(line)}`))));
    if (!this.dialog.open) this.dialog.showModal();
  }

  send(text) {
    if (!text.trim()) {
      this.complain("nothing to load: choose a file, or write moves or a position");
    } else if (text.length > MAX_CHARACTERS) {
      this.complain(`the text is longer than ${MAX_CHARACTERS} characters`);
    } else {
      this.dialog.close();
      this.on.load(text);
    }
  }
}

function about(line) {
  try {
    const { players, actions, variant } = JSON.parse(line);
    return `${(players ?? [variant]).join(" – ")}, ${actions.length} plies`;
  } catch {
    return "not a record";
  }
}

function download(name, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
