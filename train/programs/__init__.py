"""A run's compiled programs: state, self-play, replay, learning, and the memory that they need."""
