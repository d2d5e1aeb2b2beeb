"""The process of a recorder: its settings, sources, metrics, and its life from start to end."""
