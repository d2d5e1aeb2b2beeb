"""What the leader of a partition does: takes messages, answers fetches, keeps the ISR and the high watermark."""
