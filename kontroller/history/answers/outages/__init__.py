"""How long something could not be used, or was close to it; what began it, and how it ended."""
