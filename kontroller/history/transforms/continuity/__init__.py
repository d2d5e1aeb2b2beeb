"""The continuity of a history from record to record: numbers, clocks, silences."""
