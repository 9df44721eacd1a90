"""Wire and journal forms: values, envelopes, failures, journal rows. Pure: bytes in, bytes out."""
