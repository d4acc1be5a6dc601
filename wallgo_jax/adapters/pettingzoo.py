"""WallGo as a PettingZoo environment, one agent acting at a time (extra `pettingzoo`).

    from wallgo_jax.adapters.pettingzoo import WallGoAEC

    env = WallGoAEC("playwallgo-4p")
    env.reset()
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        env.step(None if terminated else env.action_space(agent).sample(info["action_mask"]))

Terry et al., "PettingZoo: Gym for Multi-Agent Reinforcement Learning", section "Agent Environment
Cycle". The rules are those of the env below; an illegal action ends the game and costs
its player 1.
"""

from typing import Any, Literal

import numpy as np

from wallgo_jax import env as env_lib
from wallgo_jax import render
from wallgo_jax.adapters import host
from wallgo_jax.adapters.extras import needs
from wallgo_jax.game.rules import Rules

with needs("pettingzoo"):
    from gymnasium import spaces
    from gymnasium.utils import EzPickle
    from pettingzoo import AECEnv

RenderMode = Literal["ansi", "human", "svg"]


class WallGoAEC(AECEnv[str, np.ndarray, int | None], EzPickle):
    """One game at a time on the host.

    Agents are `player_0` (Red) and so on. An observation is int8[grid, grid, C], zeros and ones;
    `infos[agent]["action_mask"]` is int8[num_actions], of use to the agent to move.

    Args:
      rules, grid, planes: as for `wallgo_jax.make`.
      render_mode: `ansi` returns the board as text, `svg` a picture; `human` prints the board after
        each reset and step.
    """

    metadata = {  # noqa: RUF012  (PettingZoo's own shape of it)
        "name": "wallgo_v1",
        "render_modes": ["ansi", "human", "svg"],
        "is_parallelizable": False,
    }

    def __init__(
        self,
        rules: str | Rules = "wallzero-4stone",
        *,
        grid: int | None = None,
        planes: str = "BTRH",
        render_mode: RenderMode | None = None,
    ) -> None:
        EzPickle.__init__(self, rules, grid=grid, planes=planes, render_mode=render_mode)
        super().__init__()
        self.render_mode = render_mode
        self._env = env_lib.make(rules, grid=grid, planes=planes)
        self.possible_agents = [f"player_{player}" for player in range(self._env.num_players)]
        self._actions = {
            agent: spaces.Discrete(self._env.num_actions) for agent in self.possible_agents
        }
        shape = self._env.observation_shape
        self._observations = {
            agent: spaces.Box(0, 1, shape, np.int8) for agent in self.possible_agents
        }

    def observation_space(self, agent: str) -> spaces.Space:
        """Return the Box of int8[grid, grid, C]."""
        return self._observations[agent]

    def action_space(self, agent: str) -> spaces.Space:
        """Return the space of public actions."""
        return self._actions[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a new game; the seed does not matter, for nothing is random."""
        del seed, options
        self.agents = list(self.possible_agents)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._show(host.start(self._env))
        self._print_for_people()

    def step(self, action: int | None) -> None:
        """Play a public action for the agent selected; None for an agent whose game is over.

        Raises:
          TypeError: the action is no integer.
          ValueError: for None while the game goes on.
        """
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        if action is None:
            raise ValueError(f"step: {self.agent_selection} is to move and needs an action")
        self._cumulative_rewards[self.agent_selection] = 0.0
        self._show(host.play(self._env, self._state, host.read_action(action)))
        self._accumulate_rewards()
        self._print_for_people()

    def _show(self, state: env_lib.State) -> None:
        """Set the attributes that PettingZoo reads."""
        self._state = state
        mask = np.asarray(self._state.legal_action_mask, np.int8)
        over = bool(self._state.terminated)
        self.agent_selection = self.possible_agents[int(self._state.current_player)]
        self.rewards = {
            agent: float(share)
            for agent, share in zip(self.possible_agents, self._state.rewards, strict=True)
        }
        self.terminations = dict.fromkeys(self.agents, over)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {"action_mask": mask} for agent in self.agents}

    def observe(self, agent: str) -> np.ndarray:
        """Return int8[grid, grid, C], the same for every agent, for colours are absolute."""
        del agent
        return np.asarray(self._state.observation, np.int8)

    def render(self) -> str | None:
        """Return the board as `render_mode` says; None without a mode and for `human`."""
        if self.render_mode == "svg":
            return render.svg(self._state)
        if self.render_mode == "ansi":
            return render.text(self._state)
        return None

    def _print_for_people(self) -> None:
        if self.render_mode == "human":
            print(render.text(self._state))

    def close(self) -> None:
        """Close nothing: the game holds no files and no windows."""
