"""How much is measured: enough for steady medians, or just enough to see that it works."""

from __future__ import annotations

import msgspec

from bench.places import Place


class Scale(msgspec.Struct, frozen=True):
    """`repeats` of each figure; `seconds` a ceiling takes; `whole`: 1 for the full size."""

    repeats: int = 5
    seconds: float = 0.5
    whole: float = 1.0

    def runs(self, place: Place, at_a_time: int) -> int:
        """How many chains make one repeat: about half a second's worth."""
        if place.sync is None:
            return max(at_a_time, int(1500 * self.whole))
        if at_a_time > 1:
            return max(at_a_time, int(1280 * self.whole))
        return max(1, int((60 if place.sync == "full" else 400) * self.whole))


FULL = Scale()
QUICK = Scale(3, 0.2, 0.2)
#: For tests: one of everything.
TINY = Scale(1, 0.01, 0.001)
