"""Attention and ownership follow from the weights, whoever moves; pictures have their colours."""

import json
from pathlib import Path
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from tests.support.learner import saved, tiny
from tests.support.refusals import refusal
from train.analysis import attention, pictures
from train.analysis.attention import draw_attention, draw_ownership
from train.checkpoints.weights import load_network
from train.config.run import HeuristicConfig
from train.network import NetworkConfig, Variables
from train.players import heuristics
from wallgo_jax import observation
from wallgo_jax.drawing.theme import LIGHT
from wallgo_jax.formats import records
from wallgo_jax.formats.sources import SourceRequest
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import Game, replay_moves
from wallgo_jax.view.snapshot import NOBODY

SVG = "{http://www.w3.org/2000/svg}"
RULES = Rules(size=3, stones=1, start=((0, 0, 0), (2, 2, 1)), order=())
MOVES = "A1->A1:W1 C3->C2:W2 A1->A2:W1 C2->C2:W3 A2->A3:W1"
"""Red walls off column A, with a wall of Blue's in column C."""
SMALL = tiny.config("--network.blocks=TRT", "--network.heads=2").network
"""One network for all tests, so that its programs are compiled once a number of players."""


def who_owns(config: NetworkConfig, players: int, owner: int) -> Variables:
    """Weights whose ownership head gives every cell to one player, counted from the mover."""
    variables = tiny.random_weights(config, players)
    head = jax.tree.map(np.zeros_like, variables.params["ownership"])
    head["here"]["bias"] = 20 * np.eye(players + 1, dtype=np.float32)[owner]
    return variables._replace(params={**variables.params, "ownership": head})


@pytest.fixture(scope="module")
def game() -> Game:
    played = replay_moves(RULES, parse_moves(MOVES, grid=3))
    assert played.is_over
    return played


@pytest.fixture(scope="module")
def weights() -> Variables:
    return tiny.random_weights(SMALL)


def save_run(directory: Path, *words: str) -> Path:
    """A run directory of one checkpoint."""
    return saved.save_run(directory, seeds={1: 0}, config=tiny.config(*words))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    words = "--network.blocks=TRT", "--network.heads=2"
    return save_run(tmp_path_factory.mktemp("runs") / "seer", *words)


@pytest.fixture(scope="module")
def record(tmp_path_factory, game) -> str:
    path = tmp_path_factory.mktemp("games") / "one.jsonl"
    path.write_text(records.to_json(records.of_game(game)) + "\n")
    return str(path)


def by_hand(params, stats, planes: np.ndarray, heads: int) -> np.ndarray:
    """[heads, cells, cells] attention of a stem and the first block, T, on planes [H, W, C]."""
    height, width, _ = planes.shape
    kernel = params["stem"]["conv"]["kernel"]
    padded = np.pad(planes, ((1, 1), (1, 1), (0, 0)))
    features = np.zeros((height, width, kernel.shape[-1]))
    for row in range(height):
        for column in range(width):
            window = padded[row : row + 3, column : column + 3]
            features[row, column] = np.tensordot(window, kernel, 3)
    norm, run = params["stem"]["norm"]["norm"], stats["stem"]["norm"]["norm"]
    features = (features - run["mean"]) / np.sqrt(run["var"] + 1e-5) * norm["scale"] + norm["bias"]
    tokens = np.maximum(features, 0).reshape(height * width, -1)
    block = params["blocks"][0]
    centred = tokens - tokens.mean(-1, keepdims=True)
    tokens = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
    tokens = tokens * block["norm1"]["scale"] + block["norm1"]["bias"]
    projected = tokens @ block["query_key_value"]["kernel"] + block["query_key_value"]["bias"]
    query, key, _ = np.split(projected, 3, axis=-1)
    size = query.shape[-1] // heads
    maps = np.zeros((heads, height * width, height * width))
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        for asks in range(height * width):
            for gives in range(height * width):
                down, across = np.subtract(divmod(gives, width), divmod(asks, width)) + 8
                score = query[asks, part] @ key[gives, part] / np.sqrt(size)
                maps[head, asks, gives] = score + block["offset_bias"][head, down, across]
    maps = np.exp(maps - maps.max(-1, keepdims=True))
    return maps / maps.sum(-1, keepdims=True)


def test_attention_is_what_the_weights_say(game, weights):
    state = game.states[2]
    planes = np.asarray(jax.jit(observation.observe, static_argnames="planes")(state, planes="B"))
    expected = by_hand(weights.params, weights.batch_stats, planes.astype(float), heads=2)
    for cell in (0, 4, 5):
        found = attention.raw_attention(SMALL, weights, state, cell)
        np.testing.assert_allclose(found[0].reshape(2, 9), expected[:, cell], atol=1e-5)


def test_ownership_belongs_to_players_whoever_moves():
    """Of three players, who show in which direction the head's owners are turned."""
    start = ((0, 0, 0), (2, 2, 1), (0, 2, 2))
    rules = Rules(size=3, players=3, stones=1, start=start, order=())
    states = replay_moves(rules, parse_moves("A1->B1:W2 C3->C3:W3", grid=3)).states
    variables = who_owns(SMALL, 3, owner=1)  # all is the next player's
    for mover, state in enumerate(states):
        owned = attention.predicted_ownership(SMALL, variables, state)
        assert owned.shape == (4, 3, 3) and owned.dtype == np.float32
        np.testing.assert_allclose(owned[(mover + 1) % 3], 1, atol=1e-5)
    nobody = attention.predicted_ownership(SMALL, who_owns(SMALL, 3, owner=3), states[1])
    np.testing.assert_allclose(nobody[3], 1, atol=1e-5)


def test_true_ownership_is_the_territory(game):
    """Column A is Red's, B and C hold Blue's stone."""
    red, blue, nobody = attention.true_ownership(game.states[-1])
    column_a = np.array([[1, 0, 0]] * 3)
    np.testing.assert_array_equal(red, column_a)
    np.testing.assert_array_equal(blue, 1 - column_a)
    assert not nobody.any()


def test_error_is_of_the_board_evaluation():
    true = np.zeros((3, 1, 4), np.float32)
    true[[0, 0, 1, 2], 0, [0, 1, 2, 3]] = 1
    sure = np.array([[0.5, 0, 1, 0.25], [0.5, 1, 0, 0.25], [0, 0, 0, 0.5]], np.float32)[:, None]
    # Evaluations 0, -1, 1, 0 against 1, 1, -1, 0.
    assert attention.evaluation_error(sure, true) == pytest.approx((1 + 4 + 4 + 0) / 4)
    assert attention.evaluation_error(true, true) == 0
    np.testing.assert_array_equal(attention.board_evaluation(true)[0], [[1, 1, -1, 0]])


def test_attention_files(run, record, tmp_path):
    for ending in attention.SUFFIXES:
        draw_attention(
            str(run), SourceRequest(record), ply=2, cell="b3", out=tmp_path / f"a{ending}"
        )
    config, variables, *_ = load_network(run)
    state = replay_moves(RULES, parse_moves(MOVES, grid=3)).states[2]
    raw = attention.raw_attention(config.network, variables, state, 7)
    with np.load(tmp_path / "a.npz") as arrays:
        np.testing.assert_array_equal(arrays["raw"], raw)
        np.testing.assert_array_equal(arrays["maps"], pictures.normalised(raw))
        assert arrays["blocks"].tolist() == [1, 3] and arrays["cell"] == "B3" and arrays["ply"] == 2
    told = json.loads((tmp_path / "a.json").read_text())
    np.testing.assert_allclose(told["raw"], raw, rtol=1e-6)
    assert told["network"] == f"{run}, iteration 1"
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert len(list(root.iter(SVG + "svg"))) == 1 + 2 * 3
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_ownership_files(run, record, tmp_path, game):
    for ending in attention.SUFFIXES:
        draw_ownership(
            str(run), SourceRequest(record), ply=1, out=tmp_path / f"o{ending}", theme="dark"
        )
    config, variables, *_ = load_network(run)
    predicted = attention.predicted_ownership(config.network, variables, game.states[1])
    true = attention.true_ownership(game.states[-1])
    with np.load(tmp_path / "o.npz") as arrays:
        np.testing.assert_array_equal(arrays["predicted"], predicted)
        np.testing.assert_array_equal(arrays["true"], true)
        assert arrays["error"] == attention.evaluation_error(predicted, true)
    assert json.loads((tmp_path / "o.json").read_text())["true"] == true.tolist()
    root = ElementTree.parse(tmp_path / "o.svg").getroot()
    assert len(list(root.iter(SVG + "svg"))) == 3
    assert (tmp_path / "o.png").read_bytes().startswith(b"\x89PNG")


def test_a_heuristics_map_is_its_weights(record, tmp_path, game):
    draw_ownership("wjx", SourceRequest(record), ply=1, out=tmp_path / "w.npz")
    with np.load(tmp_path / "w.npz") as arrays:
        predicted = arrays["predicted"]
    np.testing.assert_allclose(predicted.sum(0), 1, atol=1e-6)
    weights = attention.board_evaluation(predicted)[0]
    state, red = game.states[1], np.int32(0)
    np.testing.assert_allclose(
        weights.sum(), heuristics.score(state, red, HeuristicConfig()), atol=1e-5
    )
    three = replay_moves(PRESETS["playwallgo-3p"], []).states[0]
    assert "2 players, not 3" in refusal(attention.heuristic_ownership, HeuristicConfig(), three)


def test_what_cannot_be_drawn_is_refused_in_one_line(run, record, tmp_path):
    blind = save_run(tmp_path / "blind", "--network.blocks=R", "--network.ownership=false")
    source, three, out = SourceRequest(record), SourceRequest("playwallgo-3p"), tmp_path / "a.svg"
    for player, asked, ply, path, said in (
        (run, source, 6, out, "`ply=6`"),
        (run, source, 1, Path("a.gif"), ".gif"),
        (run, three, 0, out, "3"),
        (blind, source, 0, out, "T block"),
    ):
        how = {"ply": ply, "cell": "A1", "out": path}
        assert said in refusal(draw_attention, str(player), asked, **how)
    hkoi = SourceRequest("hkoi")
    for player, asked, ply, said in (
        (run, source, -1, "`ply=-1`"),
        (run, hkoi, 0, "ended"),
        (blind, source, 0, "ownership head"),
    ):
        assert said in refusal(draw_ownership, str(player), asked, ply=ply, out=out)


def test_wrong_boards_are_refused(weights, game):
    state = game.states[0]
    larger = replay_moves(RULES, [], grid=4).states[0]
    assert "grid 4" in refusal(attention.raw_attention, SMALL, weights, larger, 0)
    batch = jax.tree.map(lambda x: np.stack([x, x]), state)
    with pytest.raises(ValueError, match="a batch"):
        attention.predicted_ownership(SMALL, weights, batch)


# Pictures.


def test_constant_maps_become_zeros():
    even = np.full((3, 3), 1 / 9, np.float32)
    rounded = even * (1 + 1e-7 * np.arange(9).reshape(3, 3)).astype(np.float32)
    slope = np.arange(9, dtype=np.float32).reshape(3, 3)
    zeros, also_zeros, stretched = pictures.normalised(np.stack([even, rounded, 2 + 3 * slope]))
    assert not zeros.any() and not also_zeros.any()
    np.testing.assert_allclose(stretched, slope / 8, rtol=1e-6)


@pytest.fixture(scope="module")
def raw() -> np.ndarray:
    """[2, 2, 3, 3]: weights of two T blocks' two heads, drawn at random."""
    weights = np.random.default_rng(0).random((2, 2, 9)).astype(np.float32)
    return (weights / weights.sum(-1, keepdims=True)).reshape(2, 2, 3, 3)


def test_colours_follow_the_maps(game, raw):
    maps = raw.reshape(4, 9)
    picture = pictures.attention_picture(raw, (1, 3), game.states[2], 3, name="seer", theme="light")
    heads = [panel for panel in picture.panels if "mean" not in panel.caption]
    for panel, values in zip(heads, maps, strict=True):
        assert panel.colours[values.argmax()] == picture.theme.heat
        assert panel.colours[values.argmin()] == picture.theme.tile
    mean = raw[0].mean(0).reshape(9)
    assert picture.panels[2].colours[mean.argmax()] == picture.theme.heat
    assert picture.panels[2].notes == tuple(f"{100 * share:.2f} %" for share in mean)


def ownership_picture(predicted, game: Game):
    true = attention.true_ownership(game.states[-1])
    return pictures.ownership_picture(
        predicted, true, game.states[1], game.states[-1], error=0.25, name="seer"
    )


def test_ownership_as_svg(game):
    shares = np.random.default_rng(0).random((3, 3, 3)).astype(np.float32)
    picture = ownership_picture(shares / shares.sum(0), game)
    root = ElementTree.fromstring(pictures.svg(picture))
    assert len(list(root.iter(SVG + "svg"))) == 3
    texts = {e.text for e in root.iter(SVG + "text")}
    assert {"Red's", "Blue's", "nobody's", "true at ply 5 · over, Blue won"} <= texts
    end, (red, blue, _) = picture.panels[1], picture.scales
    assert len(set(end.colours[::3])) == len(set(end.colours[1::3])) == 1
    assert end.colours[0] == red.colours[-1]  # column A: Red for sure
    assert end.colours[1] == blue.colours[-1]
    assert end.owners == ((0, 1.0), (1, 1.0), (1, 1.0)) * 3


def test_nobodys_cells_are_hatched_and_undecided_ones_are_empty(game):
    shares = np.zeros((3, 3, 3), np.float32)
    shares[[0, 2], 0] = [[0.25], [0.75]]  # the first row is nobody's by 0.5
    shares[:2, 1:] = 0.5  # Red's or Blue's, undecided
    panel = ownership_picture(shares, game).panels[0]
    assert panel.owners is not None
    assert panel.owners[:3] == ((NOBODY, 0.5),) * 3
    assert {strength for _, strength in panel.owners[3:]} == {0.0}
    assert set(panel.colours[3:]) == {LIGHT.tile} and LIGHT.tile not in panel.colours[:3]
