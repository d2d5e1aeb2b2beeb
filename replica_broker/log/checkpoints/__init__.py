"""The checkpoint files of a log directory: their formats, and the order of their writes."""
