"""The page of play as Playwright drives it: cells, moves, new games."""

import re


def cell(page, name):
    column, row = "ABCDEFG".index(name[0]), int(name[1]) - 1
    return page.locator(f'[data-cell="{7 * row + column}"]')


def live(page):
    return page.eval_on_selector_all(".hit.live", "cells => cells.map(c => c.dataset.cell)")


def wait_for_turn(page):
    """Wait until a person may move; returns False once the game is over."""
    page.wait_for_function(
        "() => document.querySelector('#advice').textContent"
        " || /over/.test(document.querySelector('#status').textContent)"
    )
    return "over" not in page.inner_text("#status")


def place(page, name):
    cell(page, name).click()
    cell(page, name).click()


def moves(page):
    return re.findall(r"[A-G]\d(?:->[A-G]\d:\w+)?", page.inner_text("#moves"))


def wait_for_moves(page, count):
    page.wait_for_function(
        f"() => document.querySelectorAll('#moves button').length === {count + 1}"
    )
    return moves(page)


def wait_for_text(page, selector, text):
    page.wait_for_function(
        "([selector, text]) => document.querySelector(selector).textContent"
        ".replaceAll('\u2060', '').includes(text)",
        arg=[selector, text],
    )


def start(page, *seats):
    page.click("#new")
    for player, seat in enumerate(seats):
        page.select_option(f"#seat-{player}", seat)
    # The list of moves is drawn anew with the new game: until then clicks would go to the old one.
    page.eval_on_selector("#moves button", "button => { button.dataset.old = '' }")
    page.click("#setup-start")
    page.wait_for_function(
        "() => document.querySelectorAll('#moves button').length === 1"
        " && !document.querySelector('#moves [data-old]')"
    )


def play_somehow(page, choose):
    if page.inner_text("#advice").startswith("Pick a cell"):
        name = choose.choice(live(page))
        page.locator(f'[data-cell="{name}"]').click()
        page.locator(f'[data-cell="{name}"]').click()
        return
    origin = choose.choice(live(page))
    page.locator(f'[data-cell="{origin}"]').click()
    target = choose.choice(live(page))
    page.locator(f'[data-cell="{target}"]').click()
    walls = page.locator(".ghost")
    walls.nth(choose.randrange(walls.count())).click()
