"""Kafka's requests as a client sends them. Each kind of request is built in one module here, from the model's values.

The builders are pure. `client` sends the requests and reads most of the answers.
"""
