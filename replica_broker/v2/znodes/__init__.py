"""The znodes of design v2: their paths, formats, reads and writes."""
