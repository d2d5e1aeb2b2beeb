"""What a log knows of its producers, and the snapshots of that."""
