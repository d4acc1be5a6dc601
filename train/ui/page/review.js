// The review of the game: the accuracy of each side, and its page in a frame.

import { $, disc, make } from "./html.js";

const dialog = $("#review-dialog");
let wanted = false;
$("#review-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => $("#review-frame").removeAttribute("src"));

// The next review that is finished opens by itself.
export function expectReview() { wanted = true; }

export function isReviewing({ review }) { return Boolean(review && !review.name && !review.error); }

export function drawReview(view, nodes) {
  const box = $("#review-box"), { review } = view;
  $("#review").disabled = view.nodes.length < 2 || view.puzzle?.state === "open" || isReviewing(view);
  $("#end-review").disabled = $("#review").disabled;
  box.hidden = !review || isReviewing(view);
  if (box.hidden) return;
  if (review.error) {
    wanted = false;
    box.replaceChildren(make("p", {}, `No review: ${review.error}`));
    return;
  }
  box.replaceChildren(
    make("p", {}, ...review.accuracy.flatMap((share, player) => [
      disc(player), ` ${share === null ? "–" : `${share}\u202f%`}  `,
    ]), make("span", { class: "quiet" }, review.tip === view.tip ? "accuracy" : `accuracy to move ${nodes.get(review.tip)?.depth ?? "…"}`)),
    make("button", { id: "review-open", onclick: () => openReview(review) }, "Open review"));
  if (wanted) openReview(review);
  wanted = false;
}

function openReview(review) {
  const address = `reviews/${review.name}`, page = `${address}.html?theme=${$("#theme").value}`;
  $("#review-frame").src = $("#review-tab").href = page;
  $("#review-figures").href = `${address}.json`;
  if (!dialog.open) dialog.showModal();
}
