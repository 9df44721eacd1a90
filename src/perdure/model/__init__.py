"""Values and names everything else is built on: no I/O, no clock, no chance."""
