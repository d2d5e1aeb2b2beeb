"""What the history tells, one question a module; docs/pipeline.md defines each before it is computed."""
