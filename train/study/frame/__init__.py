"""What the topics of `study` share: their scale, kept pieces of work, and the folder they write."""
