"""The history of a controller on Apache Spark: from journals and logs to availability, audits and reports.

`sources` read lines. `transforms` turn them into checked events and intervals. `answers`, `audit` and `alarms`
interpret these, and `reports` draws them. All of them are functions from DataFrame to DataFrame without a session of
their own. `pipelines` declares them to Spark, `store` keeps the tables, `session` starts Spark on one machine.
docs/pipeline.md defines every answer.
"""
