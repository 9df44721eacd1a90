"""The shell: the only place where time passes and I/O happens.

Reaches stores only through `stores.port` and what crosses it, and doors only through
`Definition.machine()`.
"""
