"""The journal of a cluster's state: what the controller changed, written down in order, and read back.

`changes` notices what changes in memory, `record_encoder` turns that into records, `writer` hands them to a `Sink` in a
thread of its own, `segments` is the sink that writes files, `reader` reads them, and `fold` makes the state out of the
records. The schema is described in docs/journal.md.
"""
