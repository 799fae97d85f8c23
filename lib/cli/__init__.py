"""What every script does alike: the venv, its options and --help, ids on stdin, progress, signals, exit status."""
