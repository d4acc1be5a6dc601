"""A slow, plain referee and solver, independent of the engine."""
