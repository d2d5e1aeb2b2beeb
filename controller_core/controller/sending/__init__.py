"""Requests to brokers: gathered while an event is handled, built, and sent over one stream for each broker."""
