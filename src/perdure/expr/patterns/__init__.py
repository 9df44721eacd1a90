"""Regular expressions for matches(): RE2's syntax, in linear time, the same on every machine.

Python's `re` backtracks, so a short pattern can stop an engine; an optional RE2 binding would make
a recorded decision depend on what is installed. Only a yes or no is needed, which an automaton
built as it runs gives in a few hundred lines. What needs memory of the text (back-references,
lookaround) is refused, as RE2 refuses it.
"""
