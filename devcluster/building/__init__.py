"""Fetches or builds the parts of real servers into the cache outside the repository, each part once."""
