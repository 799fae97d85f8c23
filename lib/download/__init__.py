"""Downloads from Tenhou's server: one session with a pause between requests, the lists of games, the games."""
