"""From a game to its rows: the schema, what each seat sees, which decisions the log proves, encoding."""
