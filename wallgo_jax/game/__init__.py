"""The referee: rules as data, state, actions, territory, symmetry; one board at a time."""
