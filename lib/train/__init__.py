"""Reading the cache for training."""
