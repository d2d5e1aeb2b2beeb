"""The search: which replicas leave, where they go, which return, which lead."""
