"""What the history answers, one question a module; docs/pipeline.md defines each before it is computed."""
