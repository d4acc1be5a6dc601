// The review of the game: how far it is, the accuracy of each side, and its page in a frame.

import { $, disc, make } from "./html.js";

const dialog = $("#review-dialog");
let wanted = false;
$("#review-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => $("#review-frame").removeAttribute("src"));

// The next review that is finished opens by itself.
export function expectReview() { wanted = true; }

export function drawReview(view, nodes) {
  const box = $("#review-box"), { review } = view;
  $("#review").disabled = view.nodes.length < 2 || view.puzzle?.state === "open" || Boolean(review && !review.name && !review.error);
  box.hidden = !review;
  if (!review) return;
  if (review.error) {
    wanted = false;
    box.replaceChildren(make("p", {}, `No review: ${review.error}`));
  } else if (!review.name) {
    showProgress(box, review.share);
  } else {
    box.replaceChildren(
      make("p", {}, ...review.accuracy.flatMap((share, player) => [
        disc(player), ` ${share === null ? "–" : `${share}%`}  `,
      ]), make("span", { class: "small" }, review.tip === view.tip ? "accuracy" : `accuracy to move ${nodes.get(review.tip)?.depth ?? "…"}`)),
      make("button", { id: "review-open", onclick: () => openReview(review) }, "Open review"));
    if (wanted) openReview(review);
    wanted = false;
  }
}

// The bar stays the same element while it grows, so that it is not said anew each time.
function showProgress(box, share) {
  let bar = box.querySelector("progress");
  if (!bar) {
    bar = make("progress", { max: "1", "aria-label": "progress of the review" });
    box.replaceChildren(make("p", {}, "Reviewing the game …"), bar);
  }
  if (share > 0) bar.value = share;
}

function openReview(review) {
  const address = `reviews/${review.name}`;
  $("#review-frame").src = `${address}.html`;
  $("#review-tab").href = `${address}.html`;
  $("#review-figures").href = `${address}.json`;
  if (!dialog.open) dialog.showModal();
}
