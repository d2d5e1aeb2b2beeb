"""The names, configurations and replica placements that topics can have."""
