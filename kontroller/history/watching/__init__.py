"""`kontroller history watch`: follows journals as they are written, and reports problems. It needs no Spark.

A journal is a local folder, a served address or a topic. A task of its own reads each at its own pace. `fleet` has a
watch for each cluster, and `board` the alarms that are raised. Each receiver (`alertmanager`, `json_lines`) has its own
queue, so one that is down does not delay others. docs/alarms.md defines the alarms.
"""
