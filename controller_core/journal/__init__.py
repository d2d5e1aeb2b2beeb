"""The journal of a cluster's state: every change the controller made, in order, and the code that reads it back.

`changes` records changes in memory, `record_encoder` turns them into records, and `writer` hands those to a `Sink` in a
thread of its own. `segments` is the sink that writes files, `reader` reads them, and `fold` computes the state from the
records. docs/journal.md describes the schema.
"""
