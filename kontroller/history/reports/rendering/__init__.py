"""The page, made of its facts alone: text, tables and pictures, without Spark."""
