"""Scripts that measure one thing each: `python -m train.bench.scripts.NAME`."""
