"""KafkaTopic: what to do about a topic that is missing, differs, moves or goes."""
