"""How much each topic of a study does: configs, and how they are read."""
