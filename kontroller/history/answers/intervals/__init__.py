"""What all answers do with an interval: which day, which rack, which state it counts for."""
