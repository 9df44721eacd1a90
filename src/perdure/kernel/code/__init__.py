"""The code machine: decides for runs of workflow functions by running them, deterministically."""
