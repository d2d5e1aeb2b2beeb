"""What a page shows, chosen on Spark: from tables of any length to a bounded number of facts."""
