"""Fills the cache with what a command needs: which parts there are, and several of them side by side."""
