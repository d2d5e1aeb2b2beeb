"""Encoding and decoding of messages: frames, versions, and fast paths for the largest messages."""
