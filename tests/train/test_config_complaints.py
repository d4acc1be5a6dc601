"""Wrong configs are refused in one line, which names the file and the key."""

from pathlib import Path

import pytest

from tests.support.learner import tiny
from train.config import config_from_dict, read_config, read_saved_config
from train.runtime.errors import UsageError


def complaint(path: Path, *overrides: str) -> str:
    """The one line that refuses a wrong config."""
    with pytest.raises(UsageError) as caught:
        read_config(path, overrides)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # Unknown keys, with a hint where one is near.
        (["--iteration", "1"], "unknown key iteration; did you mean iterations? Known keys: name,"),
        (["--foo", "1"], "unknown key foo; known keys: name, seed, iterations, rules,"),
        (["--learnr.steps", "1"], "unknown key learnr; did you mean learner?"),
        (["--learner.stpes", "1"], "unknown key learner.stpes; did you mean learner.steps? Known"),
        (["--learner.q", "1"], "unknown key learner.q; known keys: batch, steps, optimizer,"),
        (["--learner.str", "1"], "unknown key learner.str; "),
        (["--seed", "x", "--learner.q", "1"], "unknown key learner.q; known keys: batch,"),
        (
            ["--heuristics.wjx.scal", "1"],
            "unknown key heuristics.wjx.scal; did you mean heuristics.",
        ),
        (["--rules.sise", "3"], "unknown key rules.sise; did you mean rules.size? Known keys: "),
        # Words that are not options.
        (["extra"], "'extra' is not an option; write --some.key value"),
        (["--seed", "1", "2"], "'2' is not an option"),
        (["--"], "'--' is not an option"),
        (["-s", "1"], "'-s' is not an option"),
        (["--seed"], "--seed has no value"),
        (["--iterations.x", "1"], "--iterations.x: iterations is not a table"),
        # Wrong types.
        (["--iterations", "many"], "iterations: Input should be a valid integer"),
        (["--iterations", "many"], "(got 'many')"),
        (["--iterations", "2.5"], "iterations: Input should be a valid integer"),
        (["--learner", "5"], "learner: Input should be a dictionary"),
        (["--learner.learning_rate", "fast"], "learner.learning_rate: Input should be a valid num"),
        (["--network.mover_first", "perhaps"], "network.mover_first: Input should be a valid bool"),
        (["--evaluation.opponents", "random"], "evaluation.opponents: Input should be a valid tup"),
        (["--evaluation.opponents", '["random", 3]'], "evaluation.opponents.1: Input should be a"),
        # Out of range.
        (["--iterations", "0"], "iterations must be at least 1"),
        (
            ["--iterations", "2147483648", "--learner.steps", "1"],
            "learner.steps (1) times iterations (2147483648) must be at most 2147483647",
        ),
        (
            ["--learner.freeze", '["stem=1", "trunk=100000"]', "--learner.steps", "30000"],
            "learner.freeze: the iterations of 'trunk=100000' times learner.steps (30000) must be",
        ),
        (["--network.custom", "{}"], "network.custom: functions are passed from Python alone, do"),
        (["--seed", "-1"], "seed must be from 0 to 2147483647"),
        (["--seed", "2147483648"], "seed must be from 0 to 2147483647"),
        (
            ["--selfplay.opening_plies", "-1"],
            "selfplay.opening_plies must not be negative (got -1)",
        ),
        (["--selfplay.opening_plies", "26"], "selfplay.opening_plies (26) must be below 14, the m"),
        (
            ["--evaluation.opening_plies", "26"],
            "evaluation.opening_plies (26) must be below 14, the most plies of a game by these",
        ),
        (["--selfplay.random_opening_prob", "0.5"], "selfplay.random_opening_prob must be 0 where"),
        (["--selfplay.temperature", "0.001"], "selfplay.temperature must be 0 or from 0.01 to 10"),
        (
            ["--selfplay.temperature", "0.1"],
            "selfplay.temperature must be 0 or at least final_temperature (0.2) (got 0.1)",
        ),
        (["--selfplay.final_temperature", "0"], "selfplay.final_temperature must be from 0.01 to"),
        (["--selfplay.temperature_halflife", "0"], "selfplay.temperature_halflife must be a numb"),
        (["--name", ""], "name '' must be a plain directory name"),
        (["--name", "a/b"], "name 'a/b' must be a plain directory name"),
        (["--name", ".."], "name '..' must be a plain directory name"),
        (["--name", ".hidden"], "name '.hidden' must be a plain directory name"),
        (["--network.blocks", "RXT"], "network.blocks: 'RXT': 'X' at place 2"),
        (["--network.width", "0"], "network.width must be at least 1 (got 0)"),
        (
            ["--network.blocks", "T", "--network.width", "6"],
            "network.width 6 is not a multiple of heads 4",
        ),
        (
            ["--network.blocks", "RT", "--network.width", "32", "--network.mlp_ratio", "0.01"],
            "network.mlp_ratio 0.01 gives T blocks of width 32 no hidden channel",
        ),
        (
            ["--network.walled_convolutions", "3"],
            "network.walled_convolutions must be 1 or 2 (got 3)",
        ),
        (
            ["--network.destination_width", "8"],
            "network.destination_width must be 0 where destination_head is false",
        ),
        (
            ["--network.destination_path", "true"],
            "network.destination_path must be false where destination_head is false",
        ),
        (
            ["--network.walking_bias", "true"],
            "network.walking_bias must be false where blocks has no T",
        ),
        (
            ["--network.blocks", "R", "--network.stones_close_gates", "true"],
            "network.stones_close_gates must be false where blocks has no W and walking_bias is",
        ),
        (["--network.dtype", "float16"], "network.dtype 'float16' is not one of auto, float32"),
        (["--network.planes", "BR"], "network.planes: 'BR' is not one of B, BT, BTR,"),
        (["--search.simulations", "0"], "search.simulations must be at least 1 (got 0)"),
        (["--search.max_considered_actions", "0"], "search.max_considered_actions must be at le"),
        (["--search.kind", "mcts"], "search.kind 'mcts' is not one of gumbel, puct"),
        (["--search.engine", "fast"], "search.engine 'fast' is not one of native, mctx"),
        (
            ["--selfplay.opponent", "runs/one", "--search.engine", "mctx"],
            "selfplay.opponent needs search.engine 'native'",
        ),
        (
            ["--selfplay.opponent", "runs/one", "--selfplay.boards", "5"],
            "selfplay.boards (5) must be a multiple of 2 with selfplay.opponent",
        ),
        (["--search.value_scale", "-1"], "search.value_scale must be a number from 0 on (got -1)"),
        (["--search.player_value_scale", "-1"], "search.player_value_scale must be a number fr"),
        (["--search.visit_offset", "-1"], "search.visit_offset must be a number from 0 on"),
        (["--search.c_init", "-1"], "search.c_init must be a number from 0 on (got -1)"),
        (
            ["--search.kind", "puct", "--search.engine", "mctx", "--search.c_init", "0.0009"],
            "search.c_init must be at least 0.001 for engine 'mctx', whose noise else chooses",
        ),
        (["--search.c_base", "0"], "search.c_base must be a number above 0 (got 0)"),
        (["--search.dirichlet_fraction", "2"], "search.dirichlet_fraction must be from 0 to 1"),
        (["--search.dirichlet_alpha", "0"], "search.dirichlet_alpha must be from 0.001 to 1000"),
        (["--search.temperature", "-1"], "search.temperature must be 0 or from 0.01 to 100"),
        (["--search.temperature_plies", "-1"], "search.temperature_plies must not be negative"),
        (["--search.first_simulations", "3"], "first_simulations must be from 0 to simulations"),
        (
            ["--selfplay.full_search_prob", "0"],
            "selfplay.full_search_prob must be above 0, at most 1",
        ),
        (["--selfplay.cheap_simulations", "0"], "cheap_simulations must be at least 1"),
        (
            ["--selfplay.policy_surprise_weight", "1.5"],
            "selfplay.policy_surprise_weight must be from 0 to 1",
        ),
        (
            ["--selfplay.cheap_policy_weight", "2"],
            "selfplay.cheap_policy_weight must be from 0 to 1",
        ),
        (["--learner.td_steps", "2"], "learner.td_steps must be 0 where value_mix is 0"),
        (
            ["--learner.value_mix", "0.5", "--learner.td_steps", "-1"],
            "learner.td_steps must be at least 0 (got -1)",
        ),
        (
            ["--learner.value_mix", "0.5", "--learner.td_steps", "1000"],
            "learner.td_steps (1000) must be below",
        ),
        (["--learner.value_mix", "-0.5"], "learner.value_mix must be from 0 to 1 (got -0.5)"),
        (["--selfplay.plies", "0"], "selfplay.plies must be at least 1 (got 0)"),
        (["--replay.positions", "0"], "replay.positions must be at least 1 (got 0)"),
        (["--learner.batch", "0"], "learner.batch must be at least 1 (got 0)"),
        (["--learner.learning_rate", "0"], "learner.learning_rate must be a number above 0 (got"),
        (["--learner.learning_rate", "-1e-3"], "learner.learning_rate must be a number above 0"),
        (["--learner.learning_rate", "nan"], "learner.learning_rate: Input should be a finite"),
        (["--learner.learning_rate", "nan"], "(got nan)"),
        (["--learner.learning_rate", "-inf"], "learner.learning_rate: Input should be a finite"),
        (["--learner.lr_drops", "[0.5, nan]"], "learner.lr_drops.1: Input should be a finite num"),
        (["--learner.max_grad_norm", "0"], "learner.max_grad_norm must be a number above 0"),
        (["--learner.weight_decay", "-1"], "learner.weight_decay must be a number from 0 on"),
        (["--learner.momentum", "1"], "learner.momentum must be from 0 to below 1 (got 1)"),
        (["--learner.ema_decay", "-1"], "learner.ema_decay must be from 0 to below 1 (got -1)"),
        (["--learner.weights.value", "-1"], "learner.weights.value must be a number from 0 on (g"),
        (["--learner.weights.reply", "inf"], "learner.weights.reply: Input should be a finite"),
        (["--heuristics.wjx.scale", "nan"], "heuristics.wjx.scale: Input should be a finite num"),
        (["--heuristics.wjx.scale", "0"], "heuristics.wjx.scale must be from 0.001 to 1000"),
        (["--network.mlp_ratio", "inf"], "network.mlp_ratio: Input should be a finite number"),
        (["--search.c_base", "nan"], "search.c_base: Input should be a finite number"),
        (["--learner.weights.valu", "1"], "did you mean learner.weights.value?"),
        (["--network.norm", "group"], "network.norm 'group' is not one of batch, layer, none"),
        (["--network.value", "q"], "network.value 'q' is not one of scalar, wdl"),
        (["--evaluation.games", "5"], "evaluation.games must be even, at least 2 (got 5)"),
        (["--evaluation.batch", "0"], "evaluation.batch must be even, at least 2 (got 0)"),
        (["--evaluation.every", "-1"], "evaluation.every must be at least 0 (got -1)"),
        (["--evaluation.sprt", '"20"'], "evaluation.sprt: '20' is not ELO0,ELO1"),
        (["--checkpoint.keep", "0"], "checkpoint.keep must be at least 1 (got 0)"),
        (["--checkpoint.keep_best", "-1"], "checkpoint.keep_best must be at least 0 (got -1)"),
        (["--checkpoint.keep-every", "-1"], "checkpoint.keep_every must be at least 0 (got -1)"),
        # Rules.
        (
            ["--rules", "wallzero"],
            "unknown preset 'wallzero'; did you mean wallzero-empty? Known presets: wal",
        ),
        (
            ["--rules", "no/such.json"],
            "rules: no such file, and unknown preset 'no/such.json'; kno",
        ),
        (["--rules", '{"sise": 3}'], "rules: unknown key 'sise'; known keys: size, players,"),
        (["--rules", "[3"], "rules: not JSON: Expecting ',' delimiter"),
        (["--rules", "3"], "rules: must be the name of a preset, a table of rules or a list of"),
        (["--rules.size", "2"], "rules: size is 2, not a whole number from 3 to 9"),
        (["--rules.size", "big"], "rules.size: Input should be a valid integer"),
        (["--rules.order", "[0, 0]"], "rules: start and order give player 0 2 stones, not 1"),
        (["--rules.order", "5"], "rules.order: Input should be a valid tuple (got 5)"),
        (["--rules.tie", '["coin"]'], "rules: tie has 'coin', not one of region, mover_loses"),
        (
            ["--search.opponents", "friends"],
            "search.opponents 'friends' is not one of paranoid, maxn",
        ),
        (
            ["--search.opponents", "maxn", "--search.engine", "mctx"],
            "search.opponents must be 'paranoid' for engine 'mctx', whose trees keep one value",
        ),
        (
            ["--rules", "playwallgo-3p", "--evaluation.sprt", "0,20"],
            "evaluation.sprt must be empty for rules of 3 players: it is a test of two",
        ),
        (
            [
                *("--learner.value_mix", "0.5", "--network.value", "wdl"),
                *("--rules.players", "3", "--rules.order", "[0, 1, 2]"),
            ],
            "learner.value_mix must be 0 for network.value 'wdl' and rules of 3 players",
        ),
        (
            [
                *("--learner.value_mix", "0.5", "--learner.td_steps", "2"),
                *("--rules.players", "3", "--rules.order", "[0, 1, 2]"),
            ],
            "learner.td_steps must be 0 for rules of 3 players",
        ),
    ],
)
def test_wrong_overrides(words, expected):
    assert expected in complaint(tiny.PATH, *words)


def test_rules_are_complained_of_once():
    message = complaint(tiny.PATH, "--rules.size", "2")
    assert message == f"config {tiny.PATH}: rules: size is 2, not a whole number from 3 to 9"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = \nseed = 1", "Invalid value (at line 1, column 8)"),
        ("seed = 1\nseed = 2", "Cannot overwrite a value"),
        ("[learner\n", "line 1"),
        ("learner = 3", "learner: Input should be a dictionary"),
        ("name = 5", "name: Input should be a valid string (got 5)"),
        # Tables where a function's name stands.
        ("[network.custom]", "network.custom: functions are passed from Python alone, docs/api.md"),
        ("[learner]\ncustom_loss = {a = 1}", "learner.custom_loss: functions are passed from Py"),
        ('[learner]\nsteps = "two\\nlines"', "learner.steps: Input should be a valid integer"),
        ('"two\\nlines" = 3', "unknown key two lines; known keys: "),
        ('name = "two\\nlines"', "name 'two\\nlines' must be a plain directory name"),
        ("[rules]\nstart = [[0, 0, 0], [1, 1]]", "rules.start.1"),
        (
            "[rules]\nplayers = 4\nstones = 4\nsize = 3",
            "rules: 4 players with 4 stones each do not",
        ),
        ("[[learner]]\nsteps = 1", "learner: Input should be a dictionary"),
        ("[network.extra]\na = 1", "unknown key network.extra"),
    ],
)
def test_wrong_files(tmp_path, text, expected):
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    message = complaint(path)
    assert message.startswith(f"config {path}: ")
    assert expected in message


def test_unreadable_files(tmp_path):
    missing = tmp_path / "missing.toml"
    assert complaint(missing) == f"config {missing}: no such file"
    assert complaint(tmp_path) == f"config {tmp_path}: is a directory, not a TOML file"
    (tmp_path / "config.json").write_text("{}")
    assert complaint(tmp_path).endswith(f"; --resume {tmp_path} goes on with the run in it")
    assert complaint(missing / "a") == f"config {missing}/a: no such file"
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert complaint(binary) == f"config {binary}: not a text file (UTF-8)"


def test_complaint_opens_with_where():
    with pytest.raises(UsageError, match=r"^over there: unknown key sed; did you mean seed\?"):
        config_from_dict({"sed": 1}, where="over there")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seed", "true"], "seed: Input should be a number (got true)"),
        (["--learner.learning_rate", "false"], "learner.learning_rate: Input should be a number"),
        (["--rules.walls", "true"], "rules.walls: Input should be a number (got true)"),
        (["--heuristics.wjx.top_k", "true"], "heuristics.wjx.top_k: Input should be a number"),
        (["--network.width", "9" * 23], "network.width must be at most 1000000000000000 (got 9"),
        (["--checkpoint.keep", "1e23"], "checkpoint.keep must be at most 1000000000000000"),
    ],
)
def test_numbers_that_are_none(tmp_path, words, said):
    path = tmp_path / "config.toml"
    path.write_text("")
    assert said in complaint(path, *words)


def test_switches_take_numbers_and_truth():
    assert not read_config(None, ["--network.ownership", "0"]).network.ownership
    assert read_config(None, ["--network.margin", "true"]).network.margin


@pytest.mark.parametrize(("first", "last"), [("0", "0.5"), ("0.5", "0.5"), ("0.9", "0.5")])
def test_a_temperature_may_be_off_or_stay_as_it_is(first, last):
    words = ["--selfplay.temperature", first, "--selfplay.final_temperature", last]
    assert read_config(None, words).selfplay.final_temperature == 0.5


@pytest.mark.parametrize(
    ("text", "given"), [("[]", "[]"), ("null", "None"), ("5", "5"), ('"a\\nb"', r"'a\nb'")]
)
def test_what_is_no_config_at_all(tmp_path, text, given):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_saved_config(tmp_path)
    path = tmp_path / "config.json"
    assert str(caught.value) == f"{path}: Input should be a dictionary (got {given})"


def test_a_saved_function_that_is_a_table_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"network": {"custom": {"a": 1}}}')
    with pytest.raises(UsageError) as caught:
        read_saved_config(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'config.json'}: network.custom: functions ")
    assert "\n" not in str(caught.value)


def test_a_file_of_a_run_is_no_run(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match=r"not a run directory: it is a file$"):
        read_saved_config(tmp_path / "config.json")


def test_wrong_rules_are_named_once(tmp_path):
    (tmp_path / "rules.json").write_text('{"size": 2}')
    with pytest.raises(UsageError) as caught:
        read_config(None, ["--rules", str(tmp_path / "rules.json")])
    message = str(caught.value)
    assert message.endswith("rules.json: size is 2, not a whole number from 3 to 9")
