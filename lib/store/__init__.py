"""The work directory: where things are, files that survive a crash, locks, the current record of each game."""
