"""Timing of compiled programs."""
