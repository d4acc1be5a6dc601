"""Players that evaluate positions: a raw policy, or a search that a network or a heuristic guides.

Players of equal configs share one compiled program, whatever their weights.
"""

import functools
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from train.checkpoints import pretrained, weights
from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig
from train.network import NetworkConfig, Output
from train.network.build import network_for, observer_for
from train.players.basic import Act, Player, act_by
from train.players.names import MODEL, PLAYER_KINDS, PlayerName, read_name, read_network_name
from train.runtime.errors import UsageError
from train.runtime.files import reason_of
from train.search.config import MAX_SIMULATIONS, SearchConfig, as_player
from train.search.evaluator import Evaluator, evaluator_for, make_symmetric_evaluator
from train.search.report import EvaluateHeads
from train.search.search import Search, SearchResult, cast_own_weights, make_search
from wallgo_jax.game.rules import PRESETS, Rules, name_of
from wallgo_jax.game.state import State, initial_state

T = TypeVar("T")


def load_network(name: str | PlayerName) -> TrainedNetwork:
    """Load the network of a trained player, named as `train.players.names` says.

    Raises:
      UsageError: the player has no network, or it cannot be read.
    """
    read = read_network_name(name) if isinstance(name, str) else name
    return _read(read, weights.load_pretrained, weights.load_network)


def network_config(name: PlayerName) -> RunConfig:
    """The config of the run that a trained player is from; its weights are not read.

    Raises:
      UsageError: it cannot be read.
    """
    return _read(name, pretrained.read_config, weights.read_network_config)


def _read(name: PlayerName, of_model: Callable[[str], T], of_path: Callable[[Path], T]) -> T:
    model = model_of(name)
    if model is not None:
        return of_model(model)
    try:
        return of_path(Path(name.target))
    except OSError as error:  # such as of a name too long or a closed folder
        raise UsageError(f"{name.target}: cannot be read: {reason_of(error)}") from None


def model_of(name: PlayerName) -> str | None:
    """The model that a name means, `NAME` of pretrained:NAME or net:pretrained:NAME, if any."""
    if PLAYER_KINDS[name.kind].target == MODEL:
        return name.target
    kind, colon, model = name.target.partition(":")
    return model if colon and kind == "pretrained" else None


def common_rules(names: Iterable[str], *, are_networks: bool = False) -> Rules | None:
    """The rules that all trained ones of these players have learned, the first of the first player
    among them where there are several; None where none is trained.

    Args:
      names: of players.
      are_networks: the names are of networks, so a path that does not exist is called that.

    Raises:
      UsageError: two have learned no rules in common, or a name is wrong.
    """
    read = read_network_name if are_networks else read_name
    trained = [name for name in dict.fromkeys(map(read, names)) if name.has_network]
    learned = [network_config(name).learned for name in trained]
    common = learned[0] if learned else ()
    for name, its in zip(trained, learned, strict=True):
        shared = tuple(rules for rules in common if rules in its)
        if not shared:
            known, its_words = _unlearned(learned[0], its)
            transfer = "" if are_networks else ", and --transfer lets both play it"
            raise UsageError(
                f"{trained[0].text} has learned {known}, {name.text} {its_words}: --rules says "
                f"which to play{transfer}"
            )
        common = shared
    return common[0] if common else None


def refuse_other_rules(
    name: str, learned: Sequence[Rules], rules: Rules, *, transfer: bool | None = None
) -> None:
    """Refuse rules that a trained player cannot play with a UsageError.

    Args:
      name: of the player, for the message.
      learned: the rules that it was trained on, at least one.
      rules: those that it is asked to play.
      transfer: let it play others, for as many players; None where nobody can ask for that.
    """
    if learned[0].players != rules.players:
        raise UsageError(
            f"player {name!r}: learned games of {learned[0].players} players, the rules are for "
            f"{rules.players}"
        )
    if rules not in learned and not transfer:
        known, asked = _unlearned(learned, [rules])
        hint = "; --transfer lets networks play rules they have not learned"
        raise UsageError(
            f"player {name!r}: learned {known}, asked to play {asked}"
            f"{'' if transfer is None else hint}"
        )


def in_words(rules: Rules, others: Iterable[Rules]) -> str:
    """The name of a preset or the size of custom rules, and what differs in others of that name."""

    def name(each: Rules) -> str:
        preset = name_of(each)
        return preset if preset in PRESETS else f"custom rules on {each.size}x{each.size}"

    alike = [vars(other) for other in others if name(other) == name(rules)]
    changed = [
        f"{field} {value}"
        for field, value in vars(rules).items()
        if any(other[field] != value for other in alike)
    ]
    return f"{name(rules)} ({', '.join(changed)})" if changed else name(rules)


def _unlearned(learned: Sequence[Rules], others: Sequence[Rules]) -> tuple[str, str]:
    """Rules that a network has learned, and others, in words."""
    own = ", ".join(in_words(rules, others) for rules in learned)
    return own, ", ".join(in_words(rules, learned) for rules in others)


RAW_POLICY = 0
"""Simulations of a player that does not search."""
PROBE = 64
"""Simulations of the search that is timed first."""
_NEAR = 2  # a budget within this factor of the probe needs no second search
_REPEATS, _ENOUGH = 5, 1.0  # timed calls, at most, and the seconds after which no more are made


def network_player(
    name: str, variables: Any, config: RunConfig, rules: Rules, **options: Any
) -> Player:
    """A player of a run's weights, which searches as the run does unless `search` is among the
    options; the rest is as in `evaluating_player`."""
    options = {"search": config.search} | options
    evaluate = evaluator_for(config.network, rules)
    player = evaluating_player(name, variables, evaluate, network=config.network, **options)
    return player._replace(
        evaluate_heads=_make_heads(config.network, rules.players),
        trained=TrainedNetwork(config, variables, name, "this process", None, {}),
    )


@functools.cache
def _make_heads(config: NetworkConfig, players: int) -> EvaluateHeads:
    def evaluate_heads(variables: Any, states: State) -> Output:
        network, observe = network_for(config, players), observer_for(config)
        planes = jax.vmap(lambda state: observe(state, None))(states)
        return network.evaluate(variables, jnp.asarray(planes))

    return evaluate_heads


def evaluating_player(
    name: str,
    variables: Any,
    evaluate: Evaluator,
    search: SearchConfig,
    *,
    simulations: int = RAW_POLICY,
    symmetries: int = 1,
    temperature: float = 0.0,
    model: Evaluator | None = None,
    network: NetworkConfig | None = None,
) -> Player:
    """A player of an evaluator, without exploration noise.

    Args:
      name: of the player.
      variables: of the evaluator.
      evaluate: evaluates roots and leaves.
      search: options of the search; the budget and its growth are not read.
      simulations: at every ply of a game; RAW_POLICY plays the likeliest slot.
      symmetries: turned copies of the root, 1 to 8, whose mean evaluation a search begins with, or
        the raw policy is.
      temperature: as in `act_by`.
      model: of the opponent, as in `make_search`.
      network: config of the network whose weights the variables are, None for none.
    """
    options = as_player(search, simulations or search.simulations)
    if simulations == RAW_POLICY:
        report = _raw_report(make_symmetric_evaluator(evaluate, symmetries))
    else:
        report = _search_report(evaluate, options, symmetries, model, network)
    return Player(
        name=name,
        variables=variables,
        act=act_by(report, temperature),
        report=report,
        evaluate=evaluate,
        search=options,
        symmetries=symmetries,
        simulations=simulations,
    )


@functools.cache
def _raw_report(evaluate: Evaluator) -> Search:
    """An evaluator's likeliest slot as a search, whose policy is the raw one."""

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        del key
        logits, values = evaluate(variables, states)
        slot, value = logits.argmax(axis=-1).astype(jnp.int32), values[:, 0]
        policy = jax.nn.softmax(logits, axis=-1)
        return SearchResult(slot, policy, value, jnp.zeros_like(value), logits)

    return search


@functools.cache
def _search_report(
    evaluate: Evaluator,
    options: SearchConfig,
    symmetries: int,
    model: Evaluator | None,
    network: NetworkConfig | None,
) -> Search:
    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        # Made where it is traced: a session that searches otherwise needs no search of a run's own.
        choose = make_search(evaluate, options, explores=False, symmetries=symmetries, model=model)
        # Cast once, before the search begins.
        cast = variables if network is None else cast_own_weights(variables, network)
        return choose(cast, states, key)

    return search


def simulations_in(
    seconds: float,
    make_act: Callable[[int], Act],
    variables: Any,
    rules: Rules,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> int:
    """Count the simulations that one board has time for; at least 1, at most MAX_SIMULATIONS.

    In a match many boards share each batch, so that a move takes less time there; two players with
    the same time still get the same time.

    A search of PROBE simulations is timed in the first position of a game, and where that is far
    from the budget, a second one of about the number that is asked for: a simulation takes longer
    in a deep tree. The count is rounded down to two significant digits, since timings vary.

    Args:
      seconds: a move may take.
      make_act: from simulations to the `act` of the player.
      variables: weights of the player.
      rules: to play.
      clock: seconds of a clock that never goes back.
    """
    states = jax.tree.map(lambda x: jnp.asarray(x)[None], initial_state(rules))

    def seconds_of(simulations: int) -> float:
        """The median time of a call once it is compiled and warm."""
        act, key = make_act(simulations), jax.random.key(0)
        jax.block_until_ready(act(variables, states, key))
        times: list[float] = []
        while len(times) < _REPEATS and sum(times) < _ENOUGH:
            began = clock()
            jax.block_until_ready(act(variables, states, key))
            times.append(clock() - began)
        return max(statistics.median(times), 1e-9)

    def within(simulations: float) -> int:
        return min(max(int(simulations), 1), MAX_SIMULATIONS)

    probed = seconds_of(PROBE)
    count = within(PROBE * seconds / probed)
    if not PROBE / _NEAR <= count <= PROBE * _NEAR:
        took = seconds_of(count)
        a_simulation = (took - probed) / (count - PROBE)
        if a_simulation > 0:
            count = within(count + (seconds - took) / a_simulation)
    unit = 10 ** max(0, math.floor(math.log10(count)) - 1)
    return count // unit * unit
