"""kopf, as the operator uses it: it watches the objects and receives the API server's questions, in a thread of its own."""
