"""Scripts that take minutes: kills, flipped bits, generated input, a long run, mutations.

Pytest collects none of them. Each is run as `python -m tests.reliability.NAME OUT`; see
docs/reliability.md and .github/CONTRIBUTING.md.
"""
