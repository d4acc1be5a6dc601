"""What the learner takes of the game, in groups: rules, boards, slots, play, rewards, planes.

Network, search, data, learning and loop take the game from here alone. Functions are for one
board, and are vmapped. `docs/architecture.md` has the names as a table with shapes, under "What
would your own game need?".
"""

# Sorted by what a learner needs, not by the game's modules.
# isort: off

# Rules: a frozen record, named sets of them, and the largest side of a grid.
from wallgo_jax.game.rules import PRESETS as PRESETS
from wallgo_jax.game.rules import Rules as Rules
from wallgo_jax.game.rules import name_of as name_of
from wallgo_jax.board.geometry import MAX_GRID as MAX_GRID

# A board: its rules as arrays (`Variant`) and what a ply changes (`Position`); the first one.
from wallgo_jax.game.state import Position as Position
from wallgo_jax.game.state import State as State
from wallgo_jax.game.state import Variant as Variant
from wallgo_jax.game.state import initial_position as initial_position
from wallgo_jax.game.state import initial_state as initial_state
from wallgo_jax.game.state import make_variant as make_variant

# Slots, the actions that a policy is over: the legal ones, a random one of them, their phase.
from wallgo_jax.game.actions import draw_slot as draw_slot
from wallgo_jax.game.actions import in_setup as in_setup
from wallgo_jax.game.actions import is_legal as is_legal
from wallgo_jax.game.actions import legal_slots as legal_slots
from wallgo_jax.game.actions import own_cells as own_cells
from wallgo_jax.board.geometry import PLAYS_PER_STONE as PLAYS_PER_STONE

# Play and restart: a legal slot, with what it finds out about the board; any slot.
from wallgo_jax.game.referee import play as play
from wallgo_jax.game.referee import play_with_analysis as play_with_analysis
from wallgo_jax.game.referee import restart_if_over as restart_if_over
from wallgo_jax.game.referee import step as step
from wallgo_jax.game.terrain import BoardAnalysis as BoardAnalysis

# Who gets what: a player's share of the rewards, and the cells that count for each player.
from wallgo_jax.game.referee import owned_cells as owned_cells
from wallgo_jax.game.referee import reward_of as reward_of

# Planes: what a network reads of a board, by channel.
from wallgo_jax.observation import Precomputed as Precomputed
from wallgo_jax.observation import observe as observe
from wallgo_jax.planes import Channel as Channel
from wallgo_jax.planes import channels as channels
from wallgo_jax.planes import orders_by_side as orders_by_side

# Symmetries: of a board, of a policy over its slots, of maps over its cells.
from wallgo_jax.board.geometry import INVERSE_SYMMETRIES as INVERSE_SYMMETRIES
from wallgo_jax.board.geometry import NUM_SYMMETRIES as NUM_SYMMETRIES
from wallgo_jax.game.symmetry import phase_of as phase_of
from wallgo_jax.game.symmetry import turn_masks as turn_masks
from wallgo_jax.game.symmetry import turn_policy as turn_policy
from wallgo_jax.game.symmetry import turn_state as turn_state

# Public actions, by which records and people name a ply on any board.
from wallgo_jax.game.actions import NO_ACTION as NO_ACTION
from wallgo_jax.game.actions import action_of_slot as action_of_slot
from wallgo_jax.game.actions import in_int32 as in_int32
from wallgo_jax.game.actions import slot_of_action as slot_of_action
from wallgo_jax.game.sizes import in_own_grid as in_own_grid

# Packing: sets of cells as bits, in which the replay keeps who owns what.
from wallgo_jax.board.bitboard import pack_sets as pack_sets
from wallgo_jax.board.bitboard import to_mask as to_mask

# Geometry, for layers and heads that follow walls and moves, and for figures of openings.
from wallgo_jax.board.geometry import MOVE_OFFSETS as MOVE_OFFSETS
from wallgo_jax.board.geometry import MOVE_PATHS as MOVE_PATHS
from wallgo_jax.board.geometry import NUM_MOVES as NUM_MOVES
from wallgo_jax.board.geometry import NUM_SIDES as NUM_SIDES
from wallgo_jax.board.geometry import OPPOSITE_SIDE as OPPOSITE_SIDE
from wallgo_jax.board.geometry import SIDE_OFFSETS as SIDE_OFFSETS
from wallgo_jax.board.geometry import SIDES as SIDES
from wallgo_jax.board.geometry import side_delta as side_delta

# Tools for arrays, of no game: a gather that a TPU compares, a stop for XLA's fusion on a CPU.
from wallgo_jax.board.fusion import fusion_barrier as fusion_barrier
from wallgo_jax.board.select import take as take
