"""Labels of versions: one that is published means one content, whoever publishes at the same time.

The words are the same in every store; looking and publishing are one step of the store's.
"""

from __future__ import annotations

from perdure.model.errors import InvalidRequest
from perdure.model.moments import moment
from perdure.stores.rows import StoredDefinition


def taken(definition: StoredDefinition, hash: str, created: int) -> InvalidRequest:
    """The error of publishing a definition whose label is that of another one, which has this
    hash and was made known at this time (µs)."""
    since = moment(created)
    return InvalidRequest(
        f"version {definition.version} of {definition.name} is known already with other content "
        f"(hash {hash[:12]}, from {since:%Y-%m-%d %H:%M} UTC, this one is "
        f"{definition.hash[:12]}): give the document another `version`"
    )
