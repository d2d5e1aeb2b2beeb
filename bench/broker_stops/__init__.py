"""The waits of producers when brokers and controllers of the chart stop, on a cluster that runs pods."""
