"""KafkaTopic: the plan for a topic that is missing, differs, moves or is deleted."""
