"""The small files of a log directory that say how far its logs are: their formats, and when they are written."""
