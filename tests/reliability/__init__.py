"""Scripts that take minutes: kills, flipped bits, generated input, a long run (docs/reliability.md),
and mutations of the product (docs/contributing.md).

Pytest collects none of them. Each is run as `python -m tests.reliability.NAME OUT`.
"""
