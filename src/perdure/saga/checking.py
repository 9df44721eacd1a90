"""What a saga as a whole is refused for: how its steps stand to one another (S-3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from perdure.model.graph_rules import cycles
from perdure.model.guesses import did_you_mean
from perdure.saga.parts import Part, illegible
from perdure.saga.record import SagaRecord, shape_of

#: Names shown of a cycle.
_SHOWN = 12


def whole_problems(parts: Sequence[Part]) -> Iterator[str]:
    """Everything that is wrong with these steps together: no steps, names twice, names of none,
    outputs that nobody can read."""
    if not parts:
        yield 'it has no steps: add some, .step("name", function)'
    names = [part.name for part in parts]
    known = Counter(names)
    for name, times in known.items():
        if times > 1:
            yield f"step {name}: declared {times} times, give each a name of its own"
    for part in parts:
        for other in part.after or ():
            if other == part.name:
                yield f"step {part.name}: it would wait for itself, leave it out of depends_on"
            elif other not in known:
                hint = did_you_mean(other, list(known))
                yield f"step {part.name}: depends_on names {other!r}, and there is none; {hint}"
        yield from illegible(part)


def circles(record: SagaRecord) -> Iterator[str]:
    """Steps that wait for one another."""
    for cycle in cycles(shape_of(record)):
        shown = cycle if len(cycle) <= _SHOWN else [*cycle[: _SHOWN - 2], "…", cycle[-1]]
        # Drawn as they run: each before the next.
        yield f"the steps wait for one another: {' → '.join([*shown, shown[0]])}, take one out"
