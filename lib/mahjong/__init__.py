"""The game of mahjong: tiles, calls, walls, rules, points, and reading a game from its log."""
