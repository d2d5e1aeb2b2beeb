"""The planner on generated clusters, held to its bars."""
