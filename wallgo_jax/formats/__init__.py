"""Positions and games as text: diagrams, ASCII boards, records, the HKOI replay code."""
