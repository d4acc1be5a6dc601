"""Samples: self-play makes them, replay keeps them, record files hold them."""
