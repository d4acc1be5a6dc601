"""Times compiled programs."""
