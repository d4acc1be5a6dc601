"""Positions and games as text: diagrams, ASCII boards, records, moves, rules, the HKOI code."""
