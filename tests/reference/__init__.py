"""What the engine is compared with; it imports nothing of the engine."""
