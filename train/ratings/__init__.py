"""Pools of players rated by the games that they play."""
