"""The shell: the only place where time passes and I/O happens.

Reaches stores only through `stores.port` and doors only through `Definition.machine()`.
"""
