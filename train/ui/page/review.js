// The review of the game: the accuracy of each side, and its page in a frame.

import { $, disc, make } from "./html.js";

const dialog = $("#review-dialog");
let wanted = false;
$("#review-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => $("#review-frame").removeAttribute("src"));

// The next review that is finished opens by itself.
export function expectReview() { wanted = true; }

export function isReviewing({ review }) { return Boolean(review?.isRunning); }

export function drawReview(view) {
  const box = $("#review-box"), { review } = view;
  $("#review").disabled = view.nodes.size < 2 || view.puzzle?.state === "open" || isReviewing(view);
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
    ]), make("span", { class: "quiet" }, review.tip === view.tip ? "accuracy" : `accuracy to move ${view.nodes.get(review.tip)?.position.ply ?? "…"}`)),
    make("button", { id: "review-open", onclick: () => openReview(review) }, "Open review"));
  if (wanted) openReview(review);
  wanted = false;
}

function openReview(review) {
  const address = review.name, page = `${address}.html?theme=${$("#theme").value}`;
  $("#review-frame").src = $("#review-tab").href = page;
  $("#review-figures").href = `${address}.json`;
  if (!dialog.open) dialog.showModal();
}
