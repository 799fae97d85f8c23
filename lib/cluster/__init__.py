"""Other machines: spreading work over them, and testing the file system that they share."""
