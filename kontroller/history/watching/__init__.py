"""`kontroller history watch`: follows journals while they are written, and says what stands wrong. It needs no Spark.

A journal is a folder, what a controller serves, or a topic; each is read by a task of its own, at its own pace. `fleet`
has a watch for each cluster in them, `board` what stands now, and each receiver (`alertmanager`, `json_lines`) keeps what
it has yet to say, so that one that is away holds up nobody. docs/alarms.md says what an alarm is.
"""
