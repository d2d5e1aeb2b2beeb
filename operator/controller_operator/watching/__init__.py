"""The operator's use of kopf, in a thread of its own: it watches the objects and receives the API server's
questions."""
