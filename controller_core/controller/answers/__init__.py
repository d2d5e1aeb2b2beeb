"""The consequences of brokers' answers to control requests."""
