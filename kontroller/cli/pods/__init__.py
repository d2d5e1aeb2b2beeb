"""Commands that the pods of brokers run: before a broker starts, while it runs, and before it stops."""
