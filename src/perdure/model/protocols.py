"""Whether an object is of a type, alike on every Python: isinstance(), and of protocols also what
wrappers pass on."""

from __future__ import annotations


def fits(thing: object, kind: type) -> bool:
    """Whether it is one of these; of a protocol, also what passes its members on by
    `__getattr__`: from Python 3.12 on isinstance() does not ask that. Raises TypeError for a
    protocol that is not @runtime_checkable."""
    if isinstance(thing, kind):
        return True
    asked = getattr(kind, "__protocol_attrs__", ()) if getattr(kind, "_is_protocol", False) else ()
    return bool(asked) and all(hasattr(thing, name) for name in asked)
