"""From lines to states over time: checked, unique events, and intervals without a change."""
