"""The config of a run: its dataclasses, how they are read, and what every key means."""

from train.config.reading import (
    assign,
    change_config,
    config_from_dict,
    config_to_dict,
    read_config,
    read_saved_config,
)
from train.config.run import (
    BEST,
    CONFIG_FILE,
    SHIPPED,
    CheckpointConfig,
    EvaluationConfig,
    RunConfig,
    TrackingConfig,
)

__all__ = [
    "BEST",
    "CONFIG_FILE",
    "SHIPPED",
    "CheckpointConfig",
    "EvaluationConfig",
    "RunConfig",
    "TrackingConfig",
    "assign",
    "change_config",
    "config_from_dict",
    "config_to_dict",
    "read_config",
    "read_saved_config",
]
