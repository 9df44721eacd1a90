"""`perdure doctor`: is everything here as it should be, and if not, what to do."""
