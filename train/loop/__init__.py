"""A run: self-play, replay, learning, evaluation, saving."""
