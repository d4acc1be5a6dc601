// The review of the game: the accuracy of each side, its mistakes to be played better, and its report in a frame.

import { COLOURS } from "./geometry.js";
import { $, disc, make, percent } from "./html.js";
import { BEST, BETTER, GOOD, PLAYED, WORSE } from "./mistakes.js";

const VERDICTS = {
  [BEST]: "That is the best move.", [GOOD]: "Well played: hardly anything is better.",
  [BETTER]: "Better, but not the best yet. Hint names the stone.", [WORSE]: "No better than the game's move. Try again.",
  [PLAYED]: "This was played. Try again.",
};

const dialog = $("#review-dialog");
$("#review-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => $("#review-frame").removeAttribute("src"));

export function isReviewing({ review }) { return Boolean(review?.isRunning); }

export function drawReview(view) {
  const { review, mistakes } = view;
  $("#review").disabled = view.nodes.size < 2 || view.puzzle?.state === "open" || isReviewing(view);
  $("#end-review").disabled = $("#review").disabled;
  $("#review-box").hidden = !review || isReviewing(view);
  if ($("#review-box").hidden) return;
  $("#review-told").replaceChildren(...(review.error ? [`No review: ${review.error}`] : accuracyOf(view)));
  $("#mistake-told").textContent = review.error ? "" : mistakeText(mistakes);
  $("#try-again").hidden = !mistakes.open;
  $("#try-again").disabled = !mistakes.open?.tried;
  $("#next-mistake").hidden = !mistakes.total;
  $("#next-mistake").disabled = mistakes.total === 1 && mistakes.open !== null;
  $("#next-mistake").textContent = mistakes.open ? "Next mistake" : "First mistake";
  $("#review-open").hidden = Boolean(review.error);
}

function accuracyOf({ review, tip, nodes }) {
  const shares = review.accuracy.flatMap((share, player) => [disc(player), ` ${share === null ? "–" : `${share}\u202f%`}  `]);
  const words = review.tip === tip ? "accuracy" : `accuracy to move ${nodes.get(review.tip)?.position.ply ?? "…"}`;
  return [...shares, make("span", { class: "quiet" }, words)];
}

// What went wrong, or what became of the move that is tried in its place.
export function mistakeText({ total, open }) {
  if (!total) return "No mistakes found.";
  if (!open) return "";
  const colour = COLOURS[open.mover];
  if (open.tried) return triedText(open.tried, colour);
  const [before, after] = open.chances ?? [];
  const whose = open.isYours ? "Your" : `${colour}'s`;
  const loss = open.chances ? ` ${whose} chance to win fell from ${percent(before)} to ${percent(after)}.` : "";
  const what = `${open.isInaccuracy ? "Inaccuracy" : "Mistake"} ${open.place} of ${total}`;
  const played = `${open.isYours ? "You" : colour} played ${open.text}\u00a0(${open.mark})`;
  return `${what}. Move ${open.ply}: ${played}.${loss} Find a better move.`;
}

function triedText({ text, chance, verdict }, colour) {
  const worth = chance === null ? "" : ` ${colour} ${percent(chance)}.`;
  return `${text}:${worth} ${VERDICTS[verdict] ?? (chance === null ? "…" : "")}`;
}

// Opens the report of a review, at the mistake that is looked at.
export function openReview({ review, mistakes }) {
  const address = review.name;
  const page = `${address}.html?theme=${$("#theme").value}#${mistakes.open?.ply ?? 0}`;
  $("#review-frame").src = $("#review-tab").href = page;
  $("#review-figures").href = `${address}.json`;
  if (!dialog.open) dialog.showModal();
}
