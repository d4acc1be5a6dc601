"""Positions and games as text: diagrams, ASCII boards, records, rules, the HKOI replay code."""
