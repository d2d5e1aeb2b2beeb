"""Kafka's requests as a client sends them. Each kind of request is built in one module here, from the model's values.

The builders are pure. `wire.client` and its users send the requests and read most of the answers.
"""
