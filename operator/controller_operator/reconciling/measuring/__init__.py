"""Questions to brokers beside all other work: how far moves are, how full disks are, and which limits are set."""
