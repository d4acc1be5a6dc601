// The replay page of a review. REVIEW stands before this: the figures, and the words for them.
const SHAPES = ["M-1-1h2v2h-2z", "M-1.1 0a1.1 1.1 0 1 0 2.2 0a1.1 1.1 0 1 0-2.2 0",
                "M0-1.4L1.4 0L0 1.4L-1.4 0z", "M0-1.3L1.3 1H-1.3z"];
const showBest = document.querySelector("#show-best");
const showOwners = document.querySelector("#show-owners");
// Where the page of play shows this one, it names its theme.
document.documentElement.dataset.theme = new URLSearchParams(location.search).get("theme");
const percent = (chance) => Math.round(100 * chance) + " %";

// A word joiner in the arrow, so that no line break parts a move.
const named = (move) =>
  move.replace("->", "-\u2060>").replace(/W(\d)/, (_, side) => REVIEW.sides[side]);

function say(selector, text) { document.querySelector(selector).textContent = text; }

function sayMove(move) {
  if (!move) { say("#verdict", "start"); say("#why", ""); return; }
  const colour = REVIEW.colours[move.mover], mark = REVIEW.marks[move.grade];
  say("#verdict", colour + " " + named(move.move) + " " + (mark || ""));
  const chances = [move.win_chance_before, move.win_chance_after].map(percent).join(" → ");
  const best = mark ? ". Best was " + named(move.best) : "";
  say("#why", move.grade + ": " + colour + " " + chances + best);
}

function sayCandidates(move) {
  const body = document.querySelector("#candidates tbody");
  const candidates = move ? move.candidates : [];
  body.parentElement.tHead.hidden = !move;
  body.replaceChildren(...candidates.slice(0, REVIEW.shown).map((each) => {
    const row = document.createElement("tr"), colour = REVIEW.colours[move.mover];
    const cells = [named(each.move), colour + " " + percent(each.win_chance), each.visits];
    row.append(...cells.map((text) => {
      const cell = document.createElement("td");
      cell.textContent = text;
      return cell;
    }));
    return row;
  }));
  const line = candidates.length ? candidates[0].line.map(named).join(", ") : "";
  say("#line", line ? "line: " + line : "");
}

function mark(at) {
  for (const arrow of document.querySelectorAll(".best"))
    arrow.style.display = showBest.checked && Number(arrow.dataset.ply) === at ? "" : "none";
  const owners = showOwners && showOwners.checked ? REVIEW.positions[at].owner : null;
  for (const path of document.querySelectorAll(".owner")) {
    const shares = owners ? owners[path.dataset.cell] : [0, 0, 1];  // nobody comes last
    const [first, second] = [...shares].sort((one, other) => other - one);
    const owner = shares.indexOf(first), isOwned = owner < shares.length - 1;
    const player = isOwned ? owner : 0, lead = isOwned ? first - second : 0;
    path.setAttribute("d", SHAPES[player]);
    path.style.fill = "var(--players-" + player + ")";
    path.style.stroke = "var(--edges-" + player + ")";
    path.style.strokeWidth = .2;
    path.setAttribute("transform", "scale(" + 6.5 * Math.sqrt(lead) + ")");
  }
}

shown = (at) => {
  sayMove(at > 0 ? REVIEW.moves[at - 1] : null);
  sayCandidates(REVIEW.moves[at]);
  mark(at);
};
for (const box of [showBest, showOwners])
  if (box) box.addEventListener("change", () => mark(ply));
