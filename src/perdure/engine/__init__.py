"""The engine: the only place where time passes and I/O happens. Its rooms, from the top, each of
which knows only those below it: worker, runs, attempts, handlers (decision 0038).

Reaches stores only through `stores.port` and what crosses it, and doors only through
`Definition.machine()`.
"""
