"""Positions and games as text: diagrams, ASCII boards, records, moves, rules, the HKOI code, and
what reads a source of any kind."""
