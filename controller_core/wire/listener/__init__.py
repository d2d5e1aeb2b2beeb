"""The controller's own port: its connections, the requests it answers, and those it relays to brokers."""
