"""Stores: where journals live.

`port` is the protocol, `rows` and `answers` are what crosses it; each folder is one store.
"""
