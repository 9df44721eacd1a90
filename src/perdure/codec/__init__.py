"""Wire and journal forms: values, failures, journal rows. Pure: bytes in, bytes out."""
