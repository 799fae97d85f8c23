"""Reading the cache for training: paipu_cache.train.reader gives numpy arrays, paipu_cache.train.torch tensors.

pip installs the folder lib of this tree as the package paipu_cache. In the tree itself, with .venv/bin/python, it is
called lib: `from lib.train.reader import Cache`.
"""
