"""How long producers wait when brokers and controllers of the chart stop, on a cluster that runs pods."""
