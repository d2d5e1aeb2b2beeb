"""Requests of clients: what Kafka's tools and client libraries ask the controller for (the server half of seeds 001, 002).

One module for each request. It checks what was asked, in Kafka's order and with Kafka's error codes, and hands on to the
procedure of `controller_core.controller` that does it; `apis.py` is the table of them all.
"""
