"""What all scripts have in common: the venv, options and --help, ids on stdin, progress, signals, exit status."""
