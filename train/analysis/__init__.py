"""What a network is, what it sees, and how right it is."""
