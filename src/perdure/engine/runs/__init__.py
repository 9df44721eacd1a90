"""Runs in memory: what happens to them, what they decide, and what follows once it is durable.

`holder` is what they ask of the worker that holds them.
"""
