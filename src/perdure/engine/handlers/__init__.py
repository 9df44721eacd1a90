"""Handlers: how each type of worker node is executed. `port` is what they implement."""
