"""The networks of trained players, by the players' names, and the rules that they have learned."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from train.checkpoints import pretrained, weights
from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig
from train.players.names import MODEL, PLAYER_KINDS, PlayerName, read_name, read_network_name
from train.runtime.errors import UsageError
from train.runtime.files import reading
from wallgo_jax.formats.option_names import argument
from wallgo_jax.game.rules import PRESETS, Rules, name_of

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
    with reading(name.target):  # such as a name too long or a closed folder
        return of_path(Path(name.target))


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
            transfer = (
                "" if are_networks else f", and {argument('transfer', True)} lets both play it"
            )
            raise UsageError(
                f"{trained[0].text} has learned {known}, {name.text} {its_words}: "
                f"{argument('rules')} says which to play{transfer}"
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
        hint = f"; {argument('transfer', True)} lets networks play rules they have not learned"
        raise UsageError(
            f"player {name!r}: learned {known}, asked to play {asked}"
            f"{'' if transfer is None else hint}"
        )


def rules_in_words(rules: Rules, others: Iterable[Rules]) -> str:
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
    own = ", ".join(rules_in_words(rules, others) for rules in learned)
    return own, ", ".join(rules_in_words(rules, learned) for rules in others)
