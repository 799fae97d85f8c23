"""The game: tiles, calls, walls, points, and a game as its log tells it."""
