"""Self-played games, and a server that stands in for Tenhou's."""
