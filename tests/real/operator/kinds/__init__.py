"""A package, so that the scope `package` of its fixtures ends with the last test here."""
