"""Reads a `Snapshot` of a cluster from its znodes: `known_znodes` znode by znode, `reading` all at once."""
