"""The controller's own port: connections, what is answered here, and what is passed on to brokers."""
