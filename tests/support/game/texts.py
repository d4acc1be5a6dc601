"""Parsers of the game's texts, with texts that they take, and random changes of such texts."""

import dataclasses
import functools
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import chex
import numpy as np

from tests.support.reference.games import random_game
from wallgo_jax import notation
from wallgo_jax.formats import diagram, hkoi_code, records
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.game.state import State, empty_trail
from wallgo_jax.view.game_replay import Game, replay_actions, replay_moves

CHARACTERS = "ABCDEFGRYabgry0123456789=+-|.:,;#>W_{}[]\"'\\/@?& \t\n\r\x0b\x00é²٣\u2028"
_WORDS = ("null", "NaN", "-1", "1e999", "9" * 40, "true", "[]", "{}", '""', "[[[[", "é", "\ud83e")


class Parser(NamedTuple):
    """What reads a text, texts that it takes, and a check of each value that it reads."""

    read: Callable[[str], Any]
    valid: Sequence[str]
    check: Callable[[Any], None]


def is_refused(read: Callable[[Any], Any], text: Any, check: Callable[[Any], None]) -> bool:
    """Whether a text is refused, in one line; the value of another one is checked."""
    try:
        value = read(text)
    except ValueError as error:
        message = str(error)
        assert message.strip() and len(message.splitlines()) == 1, message
        assert not isinstance(error, UnicodeError), message
        return True
    check(value)
    return False


def changed(draw: random.Random, valid: Sequence[str]) -> str:
    """A text with one to four changes, or a tenth of the time random bytes."""
    if draw.random() < 0.1:
        return draw.randbytes(draw.randint(0, 60)).decode("utf-8", "surrogateescape")
    text = draw.choice(valid)
    for _ in range(draw.randint(1, 4)):
        at = draw.randint(0, len(text))
        end = min(len(text), at + draw.randint(1, 4))
        some = "".join(draw.choices(CHARACTERS, k=draw.randint(1, 2)))
        other = draw.choice(valid)
        flipped = "".join(chr(ord(each) ^ (1 << draw.randint(0, 7))) for each in text[at : at + 1])
        middles = ("", some, some + text[at:end], text[at:end] * 2, draw.choice(_WORDS), flipped)
        ends = (*[text[end:]] * 6, other[draw.randint(0, len(other)) :])
        text = text[:at] + draw.choice(middles) + draw.choice(ends)
    return text


@functools.cache
def beginnings() -> dict[str, Game]:
    """The placements and ten more plies of a random game of each preset."""
    found = {}
    for name, rules in PRESETS.items():
        played = random_game(random.Random(0), rules.to_dict(), grid=rules.size).actions
        found[name] = replay_actions(rules, played[: len(rules.order) + 10])
    return found


@functools.cache
def parsers_of_game() -> dict[str, Parser]:
    """By name."""
    games = beginnings()
    first, *order = PRESETS["wallzero-4stone"].order
    start = (*PRESETS["wallzero-4stone"].start, (0, 0, first))
    custom = dataclasses.replace(PRESETS["wallzero-4stone"], start=start, order=order)
    states = [replay_actions(custom, [], grid=8).states[0]]
    states += [state for game in games.values() for state in (game.states[2], game.states[-1])]
    found = {
        "diagrams": Parser(diagram.parse, [*map(diagram.draw, states)], check_diagram),
        "HKOI codes": Parser(hkoi_code.decode, [hkoi_code.encode(games["hkoi"])], _check_code),
        "records": Parser(
            lambda line: (records.from_json(line), records.replay(records.from_json(line))),
            [records.to_json(records.of_game(game)) for game in games.values()],
            _check_record,
        ),
    }
    for name in ("wallzero-4stone", "playwallgo-3p"):
        read = functools.partial(_play, games[name].rules)
        found[f"moves of {name}"] = Parser(read, [_moves(games[name])], lambda game: None)
    return found


def check_diagram(state: State) -> None:
    """Check that a diagram loses nothing but the history, and is drawn again as it was."""
    text = diagram.draw(state)
    back = diagram.parse(text)
    wanted = state._replace(position=state.position._replace(trail=np.asarray(empty_trail())))
    chex.assert_trees_all_equal_shapes_and_dtypes(back, wanted)
    chex.assert_trees_all_equal(back, wanted)
    assert diagram.draw(back) == text


def _check_code(game: Game) -> None:
    assert hkoi_code.decode(hkoi_code.encode(game)).actions == game.actions


def _check_record(value: tuple[records.Record, Game]) -> None:
    record, game = value
    assert game.actions == record.actions
    assert records.from_json(records.to_json(record)) == record


def _moves(game: Game) -> str:
    return "\n".join(
        notation.format_action(action, grid=game.grid, player=player)
        for action, player in zip(game.actions, game.movers, strict=True)
    )


def _play(rules: Rules, text: str) -> Game:
    return replay_moves(rules, notation.parse_moves(text, grid=rules.size))
