"""The numbers of actions, as in pymahjong.MahjongEnv. 0-33 discard that tile; the others have names below."""

COUNT = 54
DISCARD_RED = 34  # 34, 35, 36: red 5m, 5p, 5s
CHI = 37  # 37, 38, 39: the called tile is lowest, middle, highest; 40, 41, 42 the same with a red five of the hand
CHI_RED = 40
PON, PON_RED = 43, 44
ANKAN, MINKAN, KAKAN = 45, 46, 47
RIICHI, RON, TSUMO, NINE_TERMINALS, NO_RIICHI, PASS = 48, 49, 50, 51, 52, 53
