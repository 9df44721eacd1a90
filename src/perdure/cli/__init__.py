"""The command line: composes everything and decides nothing."""
