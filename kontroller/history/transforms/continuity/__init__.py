"""Where a history goes on from one record to the next, and where it does not: numbers, clocks, silences."""
