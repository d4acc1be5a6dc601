"""Describes networks, shows what they attend to, and measures how right they are."""
