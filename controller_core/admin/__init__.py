"""Client requests that Kafka's tools and client libraries send to the controller (the server half of seeds 001, 002).

Each request has its own module. It validates the request, in Kafka's order and with Kafka's error codes, and calls the
procedure of `controller_core.controller` that does the work. `apis.py` is the table of all requests.
"""
