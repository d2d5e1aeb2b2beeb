"""Programs for tests: a controller that dies or stops at a write, and brokers that only answer."""
