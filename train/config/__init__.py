"""The config of a run: its dataclasses, how they are read, and what every key means."""

from train.config.reading import Key as Key
from train.config.reading import assign as assign
from train.config.reading import change_config as change_config
from train.config.reading import config_from_dict as config_from_dict
from train.config.reading import config_to_dict as config_to_dict
from train.config.reading import config_to_toml as config_to_toml
from train.config.reading import in_toml as in_toml
from train.config.reading import key_paths as key_paths
from train.config.reading import keys_of as keys_of
from train.config.reading import read_config as read_config
from train.config.reading import read_saved_config as read_saved_config
from train.config.reading import written_values as written_values
from train.config.rule_sets import RuleSet as RuleSet
from train.config.rule_sets import read_any_rules as read_any_rules
from train.config.rule_sets import read_rule_sets as read_rule_sets
from train.config.rule_sets import rule_sets_in_words as rule_sets_in_words
from train.config.rule_sets import write_rule_sets as write_rule_sets
from train.config.run import BEST as BEST
from train.config.run import CONFIG_FILE as CONFIG_FILE
from train.config.run import DEFAULT_RULES as DEFAULT_RULES
from train.config.run import SHIPPED as SHIPPED
from train.config.run import CheckpointConfig as CheckpointConfig
from train.config.run import EvaluationConfig as EvaluationConfig
from train.config.run import HeuristicsConfig as HeuristicsConfig
from train.config.run import RunConfig as RunConfig
from train.config.run import TrackingConfig as TrackingConfig
