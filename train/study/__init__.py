"""Many runs and matches that answer one question: what changes of a config are worth, and how long
a run takes to a given strength."""
