"""The workflow door: steps, and the lists an engine is given."""
