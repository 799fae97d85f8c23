"""Reading the cache for training: lib.train.reader gives numpy arrays, lib.train.torch gives PyTorch datasets."""
