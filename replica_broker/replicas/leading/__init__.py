"""The work of a partition's leader: appends, fetch responses, the ISR and the high watermark."""
