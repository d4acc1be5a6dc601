"""Floor 2: the referee - rules as data, state, actions, territory, symmetry; one board."""
