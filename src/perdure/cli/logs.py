"""What the engine logs while a command works: shown beside the progress, tracebacks on demand."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from perdure.cli.exits import debugging

if TYPE_CHECKING:
    from perdure.cli.progress import Screen


#: (workflow, id, node, attempt, place in the code) -> whether the failure is told anyway.
Raised: TypeAlias = Callable[[str, str, str, int, str], bool]

_ATTEMPT: Final = "%s/%s: attempt %d of node %s failed"
_STALLED: Final = "waiting for %s/%s, which is stalled"
_PLACE: Final = re.compile(r'^  File "([^"]+)", line (\d+)', re.MULTILINE)


class _Beside(logging.Handler):
    """Turns log records into notes of the screen, with the values of secrets taken out."""

    def __init__(self, screen: Screen, redact: Callable[[str], str], raised: Raised | None) -> None:
        super().__init__(logging.DEBUG if debugging() else logging.WARNING)
        self._screen = screen
        self._redact = redact
        self._raised = raised

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if not debugging() and self._is_told(record):
                return
            text = self.format(record)
            if not debugging():
                text = brief(text)
            self._screen.note(f"{record.levelname.lower()}: {self._redact(text)}")
        except Exception:  # whoever logs must not fail because it cannot be shown
            self.handleError(record)

    def _is_told(self, record: logging.LogRecord) -> bool:
        """Whether it is about an attempt that failed, or a run that is stalled, and that is told
        with its run."""
        args = record.args
        if self._raised is not None and record.msg.startswith(_STALLED):
            return True
        if self._raised is None or not isinstance(args, tuple) or len(args) != 5:
            return False
        if not record.msg.startswith(_ATTEMPT):
            return False
        workflow, id, number, node, text = args
        return self._raised(str(workflow), str(id), str(node), int(str(number)), _place(str(text)))


def _place(traceback: str) -> str:
    """`steps.py:12`: where a traceback ends."""
    places = _PLACE.findall(traceback)
    if not places:
        return ""
    file, line = places[-1]
    return f"{Path(file).name}:{line}"


def brief(text: str) -> str:
    """A message without its traceback, but with the place the traceback ends at."""
    message, found, rest = text.partition("Traceback (most recent call last):")
    if not found:
        return text
    lines = rest.splitlines()
    places = [line.strip() for line in lines if line.startswith('  File "')]
    place = f" ({places[-1]})" if places else ""
    return f"{message.strip()}: {lines[-1].strip()}{place}"


@contextlib.contextmanager
def log_to(
    screen: Screen, redact: Callable[[str], str], raised: Raised | None = None
) -> Iterator[None]:
    """Show warnings and errors of the engine and of steps (all of it with PERDURE_DEBUG=1).
    `raised` hears of attempts that failed; what it tells itself is not shown again."""
    logger = logging.getLogger("perdure")
    handler = _Beside(screen, redact, raised)
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if debugging() else logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
