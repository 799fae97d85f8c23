"""What pyproject.toml cannot say: `pip install` builds in a folder of its own, which is removed after the build.

In this tree a folder build/ would stay, and pip would pack modules from it that were deleted long ago.
"""

import tempfile

from setuptools import setup

folder = tempfile.TemporaryDirectory()
setup(options={"build": {"build_base": folder.name}, "egg_info": {"egg_base": folder.name}})
