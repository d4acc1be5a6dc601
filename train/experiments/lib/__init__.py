"""Cached results, statistics, reports, trainings and games of all experiments."""
