"""What a broker's pod asks about its broker: whether it is ready, and whether it may stop."""
