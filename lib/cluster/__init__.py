"""Other machines: spreading work over them, and trying out the file system they share."""
