"""The page of a review: the replay page with grades, best moves, expected owners and territory."""

from html import escape
from string import Template

from train.review.game_review import GameReview, ReviewedMove
from train.review.grades import LIMITS, MARKS
from train.review.siblings import Siblings
from wallgo_jax.drawing import board, curve, overlay
from wallgo_jax.drawing import page as page_lib
from wallgo_jax.drawing.curve import Line
from wallgo_jax.drawing.layout import TILE, layout_of
from wallgo_jax.drawing.page import Extras, script_json
from wallgo_jax.drawing.svg import element
from wallgo_jax.drawing.theme import AUTO, of_variables
from wallgo_jax.notation import COLOURS, LETTERS, SIDE_WORDS
from wallgo_jax.view.snapshot import take_snapshot

_SHOWN_CANDIDATES = 4
_MARK = 9.0
"""Distance of an owner's mark from the corner of its cell."""


def draw_review(review: GameReview, *, theme: str = AUTO, siblings: Siblings | None = None) -> str:
    """Draw a review as one HTML page that needs nothing else.

    Args:
      review: of a game.
      theme: `light`, `dark`, or `auto` for the system's setting.
      siblings: a step to show with each of its walls.
    """
    extras = Extras(
        over=[*_best_arrows(review), *_owner_marks(review)],
        notes=[_note(move, review.game.rules.players) for move in review.moves],
        panel=_panel(review, siblings),
        style=_STYLE,
        script=_SCRIPT.substitute(data=script_json(_data(review))),
    )
    return page_lib.draw(
        review.game,
        theme=theme,
        players=review.players,
        chances=review.chances.tolist(),
        extras=extras,
    )


def _best_arrows(review: GameReview) -> list[str]:
    """The best move of each position, hidden until the page shows that position."""
    theme = of_variables()
    return [
        element(
            "g",
            *overlay.arrows(
                review.snapshots[ply], theme, {int(move.report.action): 1.0}, percents=False
            ),
            class_="best",
            data_ply=ply,
            style="display: none",
        )
        for ply, move in enumerate(review.moves)
    ]


def _owner_marks(review: GameReview) -> list[str]:
    """A mark in the corner of each cell, to which the page gives owner and size."""
    if review.owners is None:
        return []
    layout, marks = layout_of(review.snapshots[0]), []
    for cell in review.snapshots[0].cells:
        x, y = layout.corner(cell)
        at = f"translate({x + TILE - _MARK:g} {y + TILE - _MARK:g})"
        marks.append(element("g", element("path", class_="owner", data_cell=cell), transform=at))
    return [element("g", *marks, id="owners", pointer_events="none")]


def _note(move: ReviewedMove, players: int) -> str:
    """A move's mark and the win chance after it: with two players always the first one's."""
    mark = MARKS.get(move.grade.name, "")
    title = escape(move.grade.name)
    shown = f'<em class="mark" title="{title}">{mark}</em>' if mark else ""
    chance, player = (
        (1 - move.after, 0) if players == 2 and move.mover else (move.after, move.mover)
    )
    return f"{shown}<small>{LETTERS[player]} {100 * chance:.0f} %</small>"


def _panel(review: GameReview, siblings: Siblings | None) -> str:
    parts = [
        '<h2 id="verdict">start</h2><p id="why"></p>',
        "<h3>best moves now</h3>",
        '<table id="candidates"><tbody></tbody></table>',
        '<p id="line"></p>',
        '<p><label><input type="checkbox" id="show-best" checked> best move</label> ',
        ""
        if review.owners is None
        else '<label><input type="checkbox" id="show-owners"> expected owners</label>',
        "</p>",
        _territory(review),
        _summary(review),
    ]
    return "".join(parts) + ("" if siblings is None else _siblings(siblings))


def _summary(review: GameReview) -> str:
    heads = "".join(f'<th title="{name}">{MARKS[name]}</th>' for name in LIMITS)
    rows = ""
    for player, (name, accuracy) in enumerate(zip(review.names, review.accuracy, strict=True)):
        disc = f'<b class="disc p{player}">{LETTERS[player]}</b>'
        counts = "".join(f"<td>{review.count_of(player, grade)}</td>" for grade in LIMITS)
        score = "–" if accuracy is None else f"{accuracy:.0f} %"
        rows += f"<tr><th>{disc} {escape(name)}</th><td>{score}</td>{counts}</tr>"
    losses = ", ".join(f"{MARKS[name]} {100 * least:.0f} %" for name, least in LIMITS.items())
    calibrated = "" if review.calibration.simulations is None else ", calibrated"
    return (
        f"<h3>accuracy</h3><table><tr><td></td><td></td>{heads}</tr>{rows}</table>"
        f'<p class="small">{losses} of win chance lost, or more. Searched by '
        f"{escape(review.player)}{calibrated}.</p>"
    )


def _territory(review: GameReview) -> str:
    players = range(review.game.rules.players)
    plies = range(len(review.snapshots))
    owned = [review.territory(ply) for ply in plies]
    lines = [
        Line(player, [None if row is None else row[player] for row in owned]) for player in players
    ]
    caption = "cells owned"
    expected = [review.expected_territory(ply) for ply in plies]
    if review.owners is not None:
        lines += [
            Line(player, [None if row is None else row[player] for row in expected], True)
            for player in players
        ]
        caption += ", pale: expected at the end"
    cells = len(review.snapshots[0].cells)
    drawn = curve.lines(lines, of_variables(), top=cells, label="territory over the game")
    return (
        f'<h3>territory</h3><div class="chart">{drawn}</div>'
        f'<p class="small">{caption}; {curve.legend(len(players))}</p>'
    )


def _siblings(siblings: Siblings) -> str:
    boards = ""
    for each in siblings.each:
        drawn = board.draw(take_snapshot(each.state), of_variables(), caption=False)
        name = "before" if each.action is None else each.side
        played = " (played)" if each.is_played else ""
        boards += (
            f"<figure>{drawn}<figcaption>{name}{played} <b>{100 * each.chance:.1f} %</b>"
            "</figcaption></figure>"
        )
    return f'<h3>{escape(siblings.title)}</h3><div id="siblings">{boards}</div>'


def _data(review: GameReview) -> dict[str, object]:
    """Input of the page's script: the review's figures, and the words for them."""
    words = {"colours": COLOURS, "marks": MARKS, "sides": SIDE_WORDS, "shown": _SHOWN_CANDIDATES}
    return {**review.to_dict(), **words}


_STYLE = """
  main { grid-template-columns: auto auto minmax(16rem, 22rem); }
  #panel h2 { font-size: 1.1rem; margin: 0; min-height: 1.4em; }
  #panel h3 { font-size: .85rem; font-weight: normal; color: var(--quiet); margin: .7rem 0 .1rem; }
  #panel p { margin: .1rem 0; min-height: 1.35em; }
  #panel .small { color: var(--quiet); font-size: .8rem; }
  #panel label { margin-right: .8rem; white-space: nowrap; }
  #panel table { border-collapse: collapse; width: 100%; }
  #panel td, #panel th { font-weight: normal; text-align: right; padding: .05rem .3rem;
                            white-space: nowrap; }
  #panel td:first-child, #panel th:first-child { text-align: left; white-space: normal;
                                                        overflow-wrap: anywhere; }
  #candidates { min-height: 6.2em; }
  #line { font-size: .85rem; color: var(--quiet); min-height: 3em; }
  #list { width: 17rem; }
  #moves button { display: flex; align-items: baseline; gap: .25rem; white-space: nowrap; }
  #moves small { margin-left: auto; color: var(--quiet); }
  #moves .mark { font-style: normal; font-weight: bold; padding: 0 .3rem;
                 border-radius: 4px; background: var(--ink); color: var(--page); }
  #siblings { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr));
              gap: .5rem; }
  #siblings figure { margin: 0; }
  #siblings svg { width: 100%; height: auto; }
  #siblings figcaption { font-size: .85rem; text-align: center; white-space: nowrap; }
  @media (min-width: 72rem) {
    .has-chances #play-area { width: min(100vw - 38rem, 100vh - 21rem, 44rem); }
  }
  @media (max-width: 72rem) {
    main { grid-template-columns: auto auto; }
    #panel { grid-column: 1 / -1; max-width: 62rem; }
  }
  @media (max-width: 44rem) {
    body { height: auto; }
    #list { flex: none; width: 100%; height: 11rem; }
  }
"""

_SCRIPT = Template("""
const REVIEW = $data;
const SHAPES = ["M-1-1h2v2h-2z", "M-1.1 0a1.1 1.1 0 1 0 2.2 0a1.1 1.1 0 1 0-2.2 0",
                "M0-1.4L1.4 0L0 1.4L-1.4 0z", "M0-1.3L1.3 1H-1.3z"];
const showBest = document.querySelector("#show-best");
const showOwners = document.querySelector("#show-owners");
const percent = (chance) => Math.round(100 * chance) + " %";

// A word joiner in the arrow, so that no line break parts a move.
const named = (move) =>
  move.replace("->", "-\u2060>").replace(/W(\\d)/, (_, side) => REVIEW.sides[side]);

function say(selector, text) { document.querySelector(selector).textContent = text; }

function sayMove(move) {
  if (!move) { say("#verdict", "start"); say("#why", ""); return; }
  const colour = REVIEW.colours[move.mover], mark = REVIEW.marks[move.grade];
  say("#verdict", colour + " " + named(move.move) + " " + (mark || ""));
  const chances = [move.win_chance_before, move.win_chance_after].map(percent).join(" → ");
  const best = mark ? ". Best was " + named(move.best) : "";
  say("#why", move.grade + ": " + colour + " " + chances + best);
}

function sayCandidates(candidates) {
  const body = document.querySelector("#candidates tbody");
  const visits = candidates.reduce((sum, each) => sum + each.visits, 0) || 1;
  body.replaceChildren(...candidates.slice(0, REVIEW.shown).map((each) => {
    const row = document.createElement("tr"), share = percent(each.visits / visits);
    const cells = [named(each.move), percent(each.win_chance), share + " of visits"];
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
  sayCandidates(at < REVIEW.moves.length ? REVIEW.moves[at].candidates : []);
  mark(at);
};
for (const box of [showBest, showOwners])
  if (box) box.addEventListener("change", () => mark(ply));
""")
