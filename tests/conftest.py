"""Tests import lib from the tree they stand in, whatever the current directory."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
