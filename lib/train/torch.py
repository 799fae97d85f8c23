"""The cache as datasets of PyTorch: Batches gives shuffled batches, Rows single rows. Only this module needs torch.
A small net, trained in as few lines as it takes:

    import torch
    from paipu_cache.train.reader import Cache
    from paipu_cache.train.torch import Batches

    rows = Batches(Cache("data/demo/cache"), 256, seed=1, split="train", ragged=True, permute_suits=True)
    loader = torch.utils.data.DataLoader(rows, batch_size=None, num_workers=2, persistent_workers=True)
    bag = torch.nn.EmbeddingBag(30 * 35 * 5, 128, mode="sum")
    head = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 54))
    optimizer = torch.optim.Adam([*bag.parameters(), *head.parameters()], 1e-3)
    for epoch in range(3):
        rows.set_epoch(epoch)
        losses = []
        for batch in loader:
            segment, tile, count, who, extra = batch["tokens"].long().T
            what = (segment * 35 + tile) * 5 + count.clamp(max=4)
            scores = head(bag(what, batch["cu_seqlens"][:-1].long()))
            scores = scores.masked_fill(batch["action_mask"] == 0, -1e9)
            loss = torch.nn.functional.cross_entropy(scores, batch["labels"])
            optimizer.zero_grad(), loss.backward(), optimizer.step()
            losses.append(loss.item())
        print(epoch, sum(losses) / len(losses))

`pip install '/path/to/this/tree[parquet,torch]'` installs paipu_cache with PyTorch.
"""

import contextlib
import os

import numpy as np
import torch

from . import columns as cols
from .gametable import CacheError

# the columns of a padded batch that PyTorch has types for
PADDED = (*cols.RAGGED, "attention_mask")


def as_tensors(rows):
    """A batch of numpy arrays as tensors, which share their memory. Only labels are copied, to int64 for cross_entropy.
    """
    return {name: torch.from_numpy(np.asarray(array, np.int64 if name == "labels" else None))
            for name, array in rows.items()}


class Batch(dict):
    """A batch by its columns. Unlike a dict it cannot be collated, into a batch of batches."""


def _refuse(batches, collate_fn_map=None):
    raise ValueError("Batches gives whole batches, so it needs a loader that makes none: "
                     "DataLoader(batches, batch_size=None)")


with contextlib.suppress(ImportError):  # PyTorch does not promise it; without it nothing is refused
    from torch.utils.data._utils.collate import default_collate_fn_map

    default_collate_fn_map[Batch] = _refuse


class Batches(torch.utils.data.IterableDataset):
    """The batches of Cache.batches (see paipu_cache.train.reader) as dicts of tensors. They are whole batches already:
    DataLoader(batches, batch_size=None). A loader with a batch_size raises ValueError at its first batch.

    Each rank of torch.distributed (or of torchrun, by its RANK and WORLD_SIZE) gets its share of the rows, and each
    worker of a DataLoader its part of that; both are found out without being told. All ranks have the same number of
    batches, which is len(). An epoch can be resumed: state_dict(seen) and load_state_dict; StatefulDataLoader calls
    these by itself.
    """

    def __init__(self, cache, size, rank=None, world=None, **options):
        """options: seed, split, select, columns, ragged and all others of Cache.batches. rank, world: instead of those
        of torch.distributed. Raises CacheError, ValueError."""
        known = dict(zip(("rank", "world"), _ranks(), strict=True))
        known |= {name: value for name, value in (("rank", rank), ("world", world)) if value is not None}
        options.setdefault("columns", None if options.get("ragged") else PADDED)
        if {"origin", "outcome"} & set(options["columns"] or ()):
            raise ValueError("PyTorch has no type for origin and outcome: ask for their fields, like hand_delta")
        self.cache, self._options = cache, {"size": size, **options, **known}
        counted = {name: options[name] for name in ("split", "drop_last", "select") if name in options}
        self._length = cache.n_batches(size, world=known["world"], **counted)
        next(cache.batches(**self._options, start=self._length), None)  # so that a wrong option is told now
        # in memory that is shared with the workers, also with those that were started long ago: the epoch, the batch of
        # it to begin with, the number of workers that took the batches before it (0: as many as now), and the number of
        # workers the last time
        self._shared = torch.zeros(4, dtype=torch.int64).share_memory_()
        # of this process alone: where a worker was told to go on, the epoch it is in, and how far it has come
        self._resumed, self._begun, self._taken = None, 0, 0

    def __len__(self):
        return self._length

    @property
    def epoch(self):
        """The epoch that comes next, or that has begun."""
        return int(self._shared[0])

    def set_epoch(self, epoch):
        """Make `epoch` the next one, from its beginning. If that is the epoch to be resumed, it is resumed."""
        if epoch != self.epoch:
            self._shared[:3] = torch.tensor([epoch, 0, 0])

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        epoch, start, before = self._resumed or self._shared[:3].tolist()
        if before not in (0, workers) and not self._options.get("ordered"):
            raise ValueError(f"this epoch was begun with num_workers={before}: resume it with the same number, or use"
                             " ordered=True from the beginning")
        self._shared[3], self._taken, self._resumed, self._begun = workers, start, None, epoch
        for rows in self.cache.batches(**self._options, epoch=epoch, start=start, worker=worker, num_workers=workers):
            self._taken += workers
            yield Batch(as_tensors(rows))

    def state_dict(self, seen=None):
        """What `load_state_dict` needs to go on after `seen` batches of this epoch: numbers and texts only.

        seen None: after the batches that this process, perhaps a worker, has yielded. StatefulDataLoader asks like
        that.
        """
        options = {name: value for name, value in self._options.items() if name != "rank" and not callable(value)}
        epoch, start = (self._begun, self._taken) if seen is None else (self.epoch, seen)
        return {"fingerprint": self.cache.fingerprint, "epoch": epoch, "start": start,
                "workers": int(self._shared[3]), "options": repr(sorted(options.items()))}

    def load_state_dict(self, state):
        """Have the next iteration go on where the state was taken. Raises CacheError if the cache has changed since
        then, and ValueError if the options have."""
        now = self.state_dict()
        if state["fingerprint"] != now["fingerprint"]:
            raise CacheError(f"{self.cache.path} has changed since the state was saved (games were added, encoded again"
                             " or compacted), so the epoch cannot be resumed: begin a new one")
        if state["options"] != now["options"]:
            raise ValueError(f"the state was saved with other options: {state['options']}; now: {now['options']}")
        where = [state["epoch"], state["start"], state["workers"]]
        if torch.utils.data.get_worker_info():  # StatefulDataLoader keeps a state for each of its workers
            self._resumed = where
        else:
            self._shared[:] = torch.tensor([*where, state["workers"]])
        self._taken, self._begun = state["start"], state["epoch"]


def _ranks():
    """(rank, how many there are) of this process."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


class Rows(torch.utils.data.Dataset):
    """A map-style dataset of single rows, for samplers of your own. Run `make convert LAYOUT=dense` first: a row of a
    parquet shard is read together with some 2,000 others."""

    def __init__(self, cache, split=None, select=None, columns=PADDED):
        """split, select, columns: as in Cache.batches. Raises CacheError, ValueError."""
        self.cache, self._numbers, self._columns = cache, cache.numbers(split, select), columns
        cols.chosen(columns, False)

    def __len__(self):
        return len(self._numbers)

    def __getitem__(self, i):
        """The i-th row, or several of them, as tensors."""
        rows = as_tensors(self.cache.rows(self._numbers[np.asarray(i)], self._columns))
        return {name: tensor[0] for name, tensor in rows.items()} if np.ndim(i) == 0 else rows

    def __getitems__(self, wanted):
        """A list of rows, read in one go; a DataLoader calls this and collates them."""
        rows = self[wanted]
        return [{name: tensor[i] for name, tensor in rows.items()} for i in range(len(wanted))]
