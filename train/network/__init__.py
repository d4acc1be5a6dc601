"""ResTNet: residual and Transformer blocks over the cells, with heads that fit any board size.

After Wu, Wu, Shih, Ju, Wu, "ResTNet: Defense against Adversarial Policies via Transformer in
Computer Go", the sections on its architecture. Only this folder imports flax; the rest of the
package uses a `Network` of plain functions over trees of arrays.

B boards, H W cells, C planes, F features, P players, A slots, T Transformer blocks.
"""

from train.network.census import Part, census, count_parameters
from train.network.config import NetworkConfig
from train.network.restnet import Network, Output, Variables, compute_dtype, make_network
from train.network.slots import MASKED, POLICY_PLANES, reply_logits, slot_logits

__all__ = [
    "MASKED",
    "POLICY_PLANES",
    "Network",
    "NetworkConfig",
    "Output",
    "Part",
    "Variables",
    "census",
    "compute_dtype",
    "count_parameters",
    "make_network",
    "reply_logits",
    "slot_logits",
]
