"""Stores: where journals live. `port` is the protocol; each other module is one store."""
