"""Requests that the controller answers while it is one, and what monitoring asks it."""
