"""ResTNet: residual and Transformer blocks over the cells, with heads that fit any board size.

After Wu, Wu, Shih, Ju, Wu, "ResTNet: Defense against Adversarial Policies via Transformer in
Computer Go", the sections on its architecture. Only this folder imports flax; the rest of the
package uses a `Network` of plain functions over trees of arrays.

B boards, H W cells, C planes, F features, P players, A slots, T Transformer blocks.

Names are imported when they are first used, so that `train.network.config` loads no flax.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.network.build import Observe as Observe
    from train.network.build import channels_of as channels_of
    from train.network.build import network_for as network_for
    from train.network.build import observer_for as observer_for
    from train.network.build import read_network as read_network
    from train.network.config import TRANSFORMER as TRANSFORMER
    from train.network.config import WALLED as WALLED
    from train.network.config import NetworkConfig as NetworkConfig
    from train.network.config import parse_blocks as parse_blocks
    from train.network.parts import Part as Part
    from train.network.parts import census as census
    from train.network.parts import count_parameters as count_parameters
    from train.network.restnet import Network as Network
    from train.network.restnet import Output as Output
    from train.network.restnet import Variables as Variables
    from train.network.restnet import cast_weights as cast_weights
    from train.network.restnet import compute_dtype as compute_dtype
    from train.network.restnet import make_network as make_network
    from train.network.slots import MASKED as MASKED
    from train.network.slots import POLICY_PLANES as POLICY_PLANES
    from train.network.slots import reply_logits as reply_logits
    from train.network.slots import slot_logits as slot_logits

_NAMES = {
    "parts": ("Part", "census", "count_parameters"),
    "build": ("Observe", "channels_of", "network_for", "observer_for", "read_network"),
    "config": ("TRANSFORMER", "WALLED", "NetworkConfig", "parse_blocks"),
    "restnet": ("Network", "Output", "Variables", "cast_weights", "compute_dtype", "make_network"),
    "slots": ("MASKED", "POLICY_PLANES", "reply_logits", "slot_logits"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
