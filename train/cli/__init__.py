"""The command line: `python -m train COMMAND`."""
