"""The facts of a page, selected with Spark: a bounded number from tables of any length."""
