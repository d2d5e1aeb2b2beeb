"""The controller: takes the role, learns what there is, and then handles one event at a time.

`controller.py` runs it, `failover.py` is what a new one does, `handlers.py` says which operation handles which event.
The rooms, each importing only those before it: `loop` (events, their queue, time, watches), `state` (what is known of the
cluster), `sending` (requests to brokers), `recording` (the journal and the state change log), `term` (all that an operation
needs), `znodes` (read and written), `machines` (the two state machines), `reassigning`, `operations` (one module for
each procedure of the specification), `role` (who becomes the controller) and `serving` (requests that it answers).
"""
