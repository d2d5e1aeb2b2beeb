"""What the controller's history shows, on Apache Spark: from journals and logs to availability, audits and reports.

`sources` read lines; `transforms` make checked events and intervals of them; `answers`, `audit` and `alarms` say what
they mean; `reports` shows it. All of these are functions from DataFrame to DataFrame without a session of their own;
`pipelines` declares them to Spark, `store` keeps the tables, `session` starts Spark on one machine.
docs/pipeline.md defines every answer.
"""
