"""The controller: takes the role, loads the cluster, and then handles one event at a time.

`controller.py` runs it, `failover.py` begins a term, `handlers.py` maps events to operations. Each of these packages
imports only those before it: `loop` (events, queue, time, watches), `state` (the cluster in memory), `sending`
(requests to brokers), `recording` (journal and state change log), `term` (all that an operation needs), `znodes` (reads
and writes of ZooKeeper), `machines` (the two state machines), `reassigning`, `operations` (one module for each
procedure of the specification), `role` (election of the controller) and `serving` (requests from brokers and clients).
"""
