"""How games between players are played and scored."""
