"""What functions of the interface share: tables, progress, keys."""
