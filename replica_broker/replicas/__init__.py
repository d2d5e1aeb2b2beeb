"""The replicas on this broker: leaders, followers, the ISR and the high watermark (seed 004, C and G)."""
