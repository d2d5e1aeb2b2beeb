"""The page: text, tables and pictures, made from its facts without Spark."""
