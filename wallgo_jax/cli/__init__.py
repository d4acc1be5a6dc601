"""The command line of the game: `python -m wallgo_jax show|replay|convert`."""
