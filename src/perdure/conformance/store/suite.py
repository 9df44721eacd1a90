"""StoreSuite: every theme together, for one store."""

from __future__ import annotations

from perdure.conformance.store.child_ends import ChildEnds
from perdure.conformance.store.children import Children
from perdure.conformance.store.claims import Claims
from perdure.conformance.store.continuing import Continuing
from perdure.conformance.store.fence import Fence
from perdure.conformance.store.finding import Finding
from perdure.conformance.store.hints import Hints
from perdure.conformance.store.leases import Leases
from perdure.conformance.store.mail import Mailboxes
from perdure.conformance.store.many import Many
from perdure.conformance.store.moving import Moving
from perdure.conformance.store.parking import Parking
from perdure.conformance.store.purging import Purging
from perdure.conformance.store.retrying import Retrying
from perdure.conformance.store.sharing import Sharing
from perdure.conformance.store.starting import Starting
from perdure.conformance.store.values import Values
from perdure.conformance.store.versions import Versions
from perdure.conformance.store.workers import Workers


class StoreSuite(
    Starting, Fence, Values, Finding, Claims, Workers, Leases, Mailboxes, Parking, Retrying,
    Purging, Children, ChildEnds, Continuing, Versions, Moving, Hints, Sharing, Many,
):  # fmt: skip
    """What every store must do. Subclass it, say how a store is `make`d and how one of its workers
    is `kill`ed (see StoreBed for the rest), and run it."""
