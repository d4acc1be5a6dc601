// Games from files and to files: records, moves, HKOI codes, diagrams; links and pictures.

import { COLOURS } from "./geometry.js";
import { $, disc, make } from "./html.js";
import { writeLink } from "./link.js";
import { pictureOf } from "./picture.js";
import { MAX_NAME, nameOfFile, writeGame, writeMoves } from "./saving.js";
import { namesOf } from "./view.js";

const MAX_CHARACTERS = 500_000;
const COPIED_SCALE = 2;  // pixels of a copied picture to one of the board

export class Files {
  // on has load(text), say(text), game(), rename(names) and board().
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
    $("#save-names").addEventListener("change", () => this.rename());
    $("#save-record").addEventListener("click", () => this.download(writeGame(on.game())));
    $("#save-picture").addEventListener("click", () => this.download(this.picture()));
    $("#copy-moves").addEventListener("click", () => this.copy("Moves", "text/plain", () => writeMoves(on.game())));
    $("#copy-picture").addEventListener("click", () => this.copy("Picture", "image/png", () => rasterOf(this.picture().text)));
    $("#copy-link").addEventListener("click", () => {
      $("#save-link").select();
      this.copy("Link", "text/plain", () => $("#save-link").value);
    });
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
    $("#save-names").replaceChildren(...namesOf(this.on.game()).map((name, player) =>
      make("label", {}, disc(player), make("input", { value: name, "aria-label": `${COLOURS[player]}'s name`, maxlength: MAX_NAME }))));
    $("#save-dialog").showModal();
  }

  // Takes the names that are typed; an empty one is left as it was.
  rename() {
    const names = namesOf(this.on.game());
    const typed = [...$("#save-names").querySelectorAll("input")].map((input) => input.value.trim());
    this.on.rename(names.map((name, player) => typed[player] || name));
  }

  download(file) {
    $("#save-dialog").close();
    download(file.name, file.text);
  }

  picture() { return { name: nameOfFile(this.on.game(), "svg"), text: pictureOf(this.on.board()) }; }

  // Puts what `read` returns, a text or a promise of a picture, on the clipboard.
  async copy(what, type, read) {
    try {
      // Some browsers allow it only at once, so that the clipboard gets a promise of what takes time.
      const content = Promise.resolve(read()).then((found) => new Blob([found], { type }));
      await navigator.clipboard.write([new ClipboardItem({ [type]: content })]);
      $("#save-told").textContent = `${what} copied.`;
    } catch {
      $("#save-told").textContent = what === "Link" ? "Copy it with your browser: it is selected."
        : "This browser does not let the page copy it. Save a file instead.";
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

// A picture as PNG, for programs that take no SVG.
async function rasterOf(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = make("canvas", { width: COPIED_SCALE * image.width, height: COPIED_SCALE * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => { canvas.toBlob(resolve); });
}

function download(name, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
