"""Tiles. In a log they are 0..135: four of each kind, one kind after the other. There are 34 kinds."""

RED = (16, 52, 88)  # one of each suit's fives
KIND = tuple(tile // 4 for tile in range(136))
AKA = tuple(int(tile in RED) for tile in range(136))

# the 37 faces of tiles: 0..33 the kinds, not red, and 34..36 the red fives; the actions that discard them have the same
# numbers
FACE = tuple(34 + kind // 9 if aka else kind for kind, aka in zip(KIND, AKA, strict=True))

# the place of a tile when a hand is sorted by kind, plain before red: 0..36
ORDER = tuple(kind + sum(kind > red // 4 for red in RED) + aka for kind, aka in zip(KIND, AKA, strict=True))
# the other way: (place, kind, aka bit) for each of the 37 places
PLACES = tuple(sorted({(order, kind, aka) for order, kind, aka in zip(ORDER, KIND, AKA, strict=True)}))


def name(tile):
    """The name of a tile, such as 7s. 0s is the red five; 1z to 7z are east to chun."""
    return kind_name(KIND[tile], AKA[tile])


def kind_name(kind, aka=0):
    """The name of a kind, 0..33; with aka, of its red five."""
    return f"{0 if aka else kind % 9 + 1}{'mpsz'[kind // 9]}"


DISCARD_OF = ["discard of " + name(tile) for tile in range(136)]  # for messages


def dora(indicator):
    """The kind that an indicator (0..135) makes dora."""
    kind = KIND[indicator]
    if kind < 27:
        return kind // 9 * 9 + (kind + 1) % 9
    if kind < 31:
        return 27 + (kind - 26) % 4
    return 31 + (kind - 30) % 3
