"""What a log knows of its producers, and the snapshots of that; how their transactions end."""
