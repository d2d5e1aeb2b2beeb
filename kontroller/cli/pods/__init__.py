"""What the pods of brokers run beside the brokers: before they start, while they run, before they stop."""
