"""From lines to what was when: checked, de-duplicated events, and the intervals in which nothing changed."""
