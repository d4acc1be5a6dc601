"""Solves small boards exactly by tables and alpha-beta search; proves claims of larger ones and of
late positions."""
