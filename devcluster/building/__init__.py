"""What real servers need, fetched or built into the cache outside the repository, each part once."""
