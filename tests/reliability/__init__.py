"""Scripts that take minutes: kills, flipped bits, generated input, a long run; docs/reliability.md.

Pytest collects none of them. Each is run as `python -m tests.reliability.NAME OUT`.
"""
