"""WallGo as a single-agent Gymnasium environment against opponents (extra `gymnasium`).

    from wallgo_jax.adapters.gymnasium import WallGoEnv

    env = WallGoEnv("wallzero-4stone")  # against random play; train.opponents has stronger ones
    observation, info = env.reset(seed=0)
    while True:
        action = env.action_space.sample(info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(action)

Towers et al., "Gymnasium: A Standard Interface for Reinforcement Learning Environments". Importing
this registers `wallgo_jax/WallGo-v1`.
"""

import os
from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex

import jax
import numpy as np

from wallgo_jax import env as env_lib
from wallgo_jax import render
from wallgo_jax.adapters import host
from wallgo_jax.adapters.extras import needs
from wallgo_jax.adapters.opponents import Opponent, play_randomly
from wallgo_jax.adapters.sides import turn_to
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import format_action

with needs("gymnasium"):
    import gymnasium
    from gymnasium import spaces
    from gymnasium.error import ResetNeeded
    from gymnasium.utils import EzPickle

RenderMode = Literal["ansi", "human", "rgb_array"]
ENV_ID = f"wallgo_jax/WallGo-v{env_lib.VERSION}"

_played = False
"""Whether an env of this process has used JAX."""
_is_forked = False
"""Whether this process was forked from one whose envs had used JAX, which hangs in it."""


def _note_fork() -> None:
    global _is_forked
    _is_forked = _played


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


class WallGoEnv(gymnasium.Env[np.ndarray, np.int64], EzPickle):
    """One game at a time on the host: a step is the learner's move and all replies to it.

    An observation is int8[grid, grid, C], zeros and ones, from the learner's side: its colour comes
    first, the others in order of turn. The reward is the learner's at the end of the game: 1 for a
    win, 0 for a draw, -1 for a loss (-1 / (P - 1) with P players); 0 before. An illegal action,
    also one out of range, ends the game and costs 1. `info` holds `action_mask`, int8[num_actions],
    all ones after the end; `seat`, the learner's colour; `players`, who plays each colour, by name,
    `learner` at its own.

    Args:
      rules, grid, planes: as for `wallgo_jax.make`.
      opponents: functions (state, key) -> action; each reset draws one for every other seat.
      seat: the learner's colour, 0 for Red; None draws it at each reset.
      render_mode: `ansi` returns the board as text, `rgb_array` its pixels (extra `png`); `human`
        prints the board after each reset and step.
    """

    metadata = {"render_modes": ["ansi", "human", "rgb_array"], "render_fps": 2}  # noqa: RUF012

    def __init__(
        self,
        rules: str | Rules = "wallzero-4stone",
        opponents: Opponent | Sequence[Opponent] = play_randomly,
        *,
        seat: int | None = None,
        grid: int | None = None,
        planes: str = "BTRH",
        render_mode: RenderMode | None = None,
    ) -> None:
        EzPickle.__init__(
            self, rules, opponents, seat=seat, grid=grid, planes=planes, render_mode=render_mode
        )
        self._env = env_lib.make(rules, grid=grid, planes=planes)
        self.rules = self._env.rules
        self._pool = _check_opponents(opponents)
        self._fixed_seat = self._check_seat(seat)
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise ValueError(f"render_mode: {render_mode!r} is not one of {', '.join(modes)}")
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(self._env.num_actions)
        self.observation_space = spaces.Box(0, 1, self._env.observation_shape, np.int8)
        self._state: env_lib.State | None = None

    def _check_seat(self, seat: int | None) -> int | None:
        if seat is not None and seat not in range(self._env.num_players):
            raise ValueError(f"seat: {seat!r} is not None or 0 to {self._env.num_players - 1}")
        return seat

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start a game; the seed decides the seat, the opponents and what they draw.

        Args:
          options: `seat` sets the learner's colour for this game.

        Raises:
          ValueError: for another option, or a seat that there is not.
          RuntimeError: the process was forked from one whose envs had used JAX.
        """
        global _played
        if _is_forked:
            raise RuntimeError(
                "WallGoEnv: this process was forked after JAX was used, and would hang; start it "
                "anew: AsyncVectorEnv(..., context='spawn')"
            )
        _played = True
        super().reset(seed=seed)
        options = options or {}
        if unknown := sorted(set(options) - {"seat"}):
            raise ValueError(f"options: {unknown[0]!r} is unknown; known options: seat")
        players = self._env.num_players
        drawn = int(self.np_random.integers(players))
        chosen = self._check_seat(options.get("seat", self._fixed_seat))
        self._seat = drawn if chosen is None else chosen
        picks = self.np_random.integers(len(self._pool), size=players)
        self._opponents = {
            colour: self._pool[pick] for colour, pick in enumerate(picks) if colour != self._seat
        }
        self._key = jax.random.key(int(self.np_random.integers(2**31)))
        self._state = self._let_opponents_play(host.start(self._env))
        self._print_for_people(self._state)
        return self._observation(self._state), self._info(self._state)

    def step(self, action: SupportsIndex) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play a public action for the learner, then the replies of the others.

        Raises:
          ResetNeeded: before the first reset, and after the end of a game.
          TypeError: the action is no integer.
          ValueError: an opponent plays an illegal action.
        """
        if self._state is None or self._state.terminated:
            raise ResetNeeded("call reset before step: no game is running")
        played = host.play(self._env, self._state, host.read_action(action))
        self._state = state = self._let_opponents_play(played)
        reward = float(state.rewards[self._seat])
        over = bool(state.terminated)
        self._print_for_people(state)
        return self._observation(state), reward, over, False, self._info(state)

    def action_masks(self) -> np.ndarray:
        """bool[num_actions]: the legal actions, under the name that MaskablePPO asks for."""
        if self._state is None:
            raise ResetNeeded("call reset before action_masks: no game is running")
        return np.array(self._state.legal_action_mask)

    def render(self) -> Any:
        """Return the board as `render_mode` says; None without a mode and for `human`."""
        if self.render_mode is None:
            return None
        if self._state is None:
            raise ResetNeeded("call reset before render: no game is running")
        if self.render_mode == "rgb_array":
            return render.rgb_array(render.svg(self._state))
        return render.text(self._state) if self.render_mode == "ansi" else None

    def _print_for_people(self, state: env_lib.State) -> None:
        if self.render_mode == "human":
            print(render.text(state))

    def _let_opponents_play(self, state: env_lib.State) -> env_lib.State:
        while not state.terminated and int(state.current_player) != self._seat:
            opponent = self._opponents[int(state.current_player)]
            key = jax.random.fold_in(self._key, int(state._step_count))
            action = int(opponent(state, key))
            if (
                not 0 <= action < len(state.legal_action_mask)
                or not state.legal_action_mask[action]
            ):
                raise ValueError(
                    f"opponent {_name(opponent)}: {self._tell(action)} is illegal on ply "
                    f"{int(state._step_count)}; opponents must return a legal public action"
                )
            state = host.play(self._env, state, action)
        return state

    def _tell(self, action: int) -> str:
        try:
            return f"action {action} ({format_action(action, grid=self._env.grid)})"
        except ValueError:  # Out of range, or a move off the grid.
            return f"action {action}"

    def _observation(self, state: env_lib.State) -> np.ndarray:
        return turn_to(self._env, np.asarray(state.observation, np.int8), self._seat)

    def _info(self, state: env_lib.State) -> dict[str, Any]:
        return {
            "action_mask": np.array(state.legal_action_mask, np.int8),
            "seat": self._seat,
            "players": tuple(
                _name(self._opponents[colour]) if colour in self._opponents else "learner"
                for colour in range(self._env.num_players)
            ),
        }


def _check_opponents(opponents: Any) -> list[Opponent]:
    """Return the functions as a list.

    Raises:
      TypeError: one is no function.
      ValueError: there is none.
    """
    if callable(opponents) or isinstance(opponents, str):
        opponents = [opponents]
    if not opponents:
        raise ValueError("opponents: the list is empty; at least one function is needed")
    for opponent in opponents:
        if not callable(opponent):
            raise TypeError(
                f"opponents: {opponent!r} is not a function (state, key) -> action; "
                "train.opponents.make_wallgo_env takes players by name"
            )
    return list(opponents)


def _name(opponent: Opponent) -> str:
    return getattr(opponent, "__name__", type(opponent).__name__)


gymnasium.register(ENV_ID, entry_point=f"{__name__}:WallGoEnv")
