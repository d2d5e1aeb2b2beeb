"""The reference broker, for tests and study: keeps replicas, leads and follows as the controller commands, serves
clients.
"""
