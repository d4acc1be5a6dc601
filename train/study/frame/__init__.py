"""What the topics of `study` share: kept pieces of work, trainings, and the folder they write."""
