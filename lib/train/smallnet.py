"""A small network and its training. It is enough to see that the rows of a cache make sense, not to play well."""

import time

import torch
from torch.nn.functional import cross_entropy

from ..rows.schema import ACTION_DIM, FIELD_VOCAB
from .selection import KINDS, of_kinds
from .torch import Batches

COLUMNS = ("tokens", "action_mask", "labels")
BATCH = 256
WIDTH = 192
RATE = 2e-3  # the learning rate at the beginning; it falls to 0
_FEW = 6  # together with a tile, all counts above 5 are treated as 5
_SEGMENT, _TILE, _COUNT, _WHO, _EXTRA = (FIELD_VOCAB[name] for name in ("segment", "tile", "count", "who", "extra"))
# each token is looked up by several of its fields together: how many values each of these combinations has
PAIRS = (_SEGMENT * _TILE * _FEW, _SEGMENT * _TILE * _WHO, _SEGMENT * _COUNT * _WHO, _SEGMENT * _EXTRA)


class SmallNet(torch.nn.Module):
    """Scores for the 54 actions. Each token of a row gives some vectors; these are added up, and two layers follow. The
    order of the tokens does not matter."""

    def __init__(self):
        super().__init__()
        self.bags = torch.nn.ModuleList(torch.nn.EmbeddingBag(n, WIDTH, mode="sum") for n in PAIRS)
        for bag in self.bags:
            torch.nn.init.normal_(bag.weight, std=0.05)
        self.head = torch.nn.Sequential(
            torch.nn.LayerNorm(WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.ReLU(),
            torch.nn.Linear(2 * WIDTH, ACTION_DIM))

    def forward(self, batch):
        """(n, 54) scores of a ragged batch; actions that are not legal have -1e9."""
        segment, tile, count, who, extra = batch["tokens"].long().T
        firsts = batch["cu_seqlens"][:-1].long()
        kind = segment * _TILE + tile
        pairs = (kind * _FEW + count.clamp(max=_FEW - 1), kind * _WHO + who, (segment * _COUNT + count) * _WHO + who,
                 segment * _EXTRA + extra)
        scores = self.head(sum(bag(pair, firsts) for bag, pair in zip(self.bags, pairs, strict=True)))
        return scores.masked_fill(batch["action_mask"] == 0, -1e9)


def train(cache, seconds, seed=0, say=None):
    """Train a SmallNet on the split "train" for so many seconds. Returns (net, frequencies, rows): how often each
    action was taken when it was legal, and how many rows were seen. say(text): called now and then with the progress.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # with several threads on a busy machine it is twenty times as slow
    net = SmallNet()
    optimizer = torch.optim.Adam(net.parameters(), RATE, fused=True)  # five times as fast as not fused
    rows = Batches(cache, BATCH, seed=seed, split="train", ragged=True, columns=COLUMNS, permute_suits=True)
    begin = told = time.monotonic()
    seen, taken, legal = 0, torch.zeros(ACTION_DIM), torch.zeros(ACTION_DIM)
    while len(rows):
        for batch in rows:
            passed = (time.monotonic() - begin) / seconds
            if passed >= 1:
                return net, taken / legal.clamp(min=1), seen
            loss = cross_entropy(net(batch), batch["labels"])
            net.zero_grad()
            loss.backward()
            optimizer.param_groups[0]["lr"] = RATE * (1 - passed)
            optimizer.step()
            seen += len(batch["labels"])
            taken += torch.bincount(batch["labels"], minlength=ACTION_DIM)
            legal += batch["action_mask"].sum(dim=0)
            if say and time.monotonic() - told > 20:
                told = time.monotonic()
                say(f"{seen} rows, epoch {rows.epoch}, loss {loss.item():.3f}")
        rows.set_epoch(rows.epoch + 1)
    return net, taken, seen


def accuracy(cache, net, frequencies):
    """For each of the first three KINDS and "all": (rows of the split "validation", those of them in which the player
    took the most frequent legal action, those in which the player took the action that the net scores highest)."""
    found = {kind: [0, 0, 0] for kind in [*list(KINDS)[:3], "all"]}
    with torch.no_grad():
        for batch in Batches(cache, BATCH, seed=None, split="validation", ragged=True, columns=COLUMNS):
            guess = (frequencies * batch["action_mask"] - (batch["action_mask"] == 0).float()).argmax(dim=1)
            right = [torch.ones(len(guess), dtype=bool), guess == batch["labels"],
                     net(batch).argmax(dim=1) == batch["labels"]]
            for kind, counts in found.items():
                these = torch.from_numpy(of_kinds(batch["action_mask"].numpy(), [kind])) if kind in KINDS else right[0]
                for i, what in enumerate(right):
                    counts[i] += int((what & these).sum())
    return {kind: tuple(counts) for kind, counts in found.items()}
