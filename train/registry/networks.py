"""The networks of trained players, by the players' names, and the rules that they have learned."""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from train.checkpoints import pretrained, weights
from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig
from train.registry.names import MODEL, PLAYER_KINDS, PlayerName, read_name, read_network_name
from train.runtime.errors import UsageError
from train.runtime.files import reason_of
from wallgo_jax.game.rules import PRESETS, Rules, name_of


def load_network(name: str) -> TrainedNetwork:
    """Load the network of a trained player, named as `train.registry.names` says.

    Raises:
      UsageError: the player has no network, or it cannot be read.
    """
    return network_of(read_network_name(name))


def network_of(name: PlayerName) -> TrainedNetwork:
    """Load the network of a trained player whose name is read; errors as `load_network`."""
    model = model_of(name)
    if model is not None:
        return weights.load_pretrained(model)
    with _reading(Path(name.target)) as path:
        return weights.load_network(path)


def network_config(name: PlayerName) -> RunConfig:
    """The config of the run that a trained player is from; its weights are not read.

    Raises:
      UsageError: it cannot be read.
    """
    model = model_of(name)
    if model is not None:
        return pretrained.read_config(model)
    with _reading(Path(name.target)) as path:
        return weights.read_network_config(path)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[Path]:
    """Turn an OSError, such as of a name too long or a closed folder, into one line."""
    try:
        yield path
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {reason_of(error)}") from None


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
    if not trained:
        return None
    configs = [(name.text, network_config(name)) for name in trained]
    first, config = configs[0]
    common = config.learned
    for other, its_config in configs[1:]:
        shared = tuple(rules for rules in common if rules in its_config.learned)
        if not shared:
            told, told_too = _tell_learned(config, its_config)
            transfer = "" if are_networks else ", and --transfer lets both play it"
            raise UsageError(
                f"{first} has learned {told}, {other} {told_too}: --rules says which to play"
                f"{transfer}"
            )
        common = shared
    return common[0]


def refuse_other_rules(
    name: str, learned: Sequence[Rules], rules: Rules, *, transfer: bool
) -> None:
    """Refuse rules that a trained player cannot play with a UsageError.

    Args:
      name: of the player, for the message.
      learned: the rules that it was trained on, at least one.
      rules: those that it is asked to play.
      transfer: let it play others, for as many players.
    """
    if learned[0].players != rules.players:
        raise UsageError(
            f"player {name!r}: learned games of {learned[0].players} players, the rules are for "
            f"{rules.players}"
        )
    if rules not in learned and not transfer:
        told, asked = tell_unlearned(learned, rules)
        raise UsageError(
            f"player {name!r}: learned {told}, asked to play {asked}; --transfer lets networks "
            "play rules they have not learned"
        )


def tell_unlearned(learned: Sequence[Rules], rules: Rules) -> tuple[str, str]:
    """What a network has learned, and other rules that it is asked to play, in words."""
    if len(learned) == 1:
        return tell_apart(learned[0], rules)
    return ", ".join(map(_tell, learned)), _tell_fully(rules, learned)


def _tell_learned(one: RunConfig, other: RunConfig) -> tuple[str, str]:
    """What two networks have learned, in words."""
    if not one.mix and not other.mix:
        return tell_apart(one.rules, other.rules)
    told = [", ".join(each.name for each in config.rule_sets) for config in (one, other)]
    return told[0], told[1]


def _tell_fully(rules: Rules, learned: Sequence[Rules]) -> str:
    """The rules in words, with what differs from the first ones that are called the same."""
    alike = [other for other in learned if _tell(other) == _tell(rules)]
    return tell_apart(alike[0], rules)[1] if alike else _tell(rules)


def tell_apart(one: Rules, other: Rules) -> tuple[str, str]:
    """Both rules in words: their names, or what differs where neither is a preset."""
    told = _tell(one), _tell(other)
    if told[0] != told[1]:
        return told
    fields = [field.name for field in dataclasses.fields(Rules)]
    changed = [name for name in fields if getattr(one, name) != getattr(other, name)]

    def in_full(rules: Rules) -> str:
        values = ", ".join(f"{name} {getattr(rules, name)}" for name in changed)
        return f"{_tell(rules)} ({values})"

    return in_full(one), in_full(other)


def _tell(rules: Rules) -> str:
    name = name_of(rules)
    return name if name in PRESETS else f"custom rules on {rules.size}x{rules.size}"
