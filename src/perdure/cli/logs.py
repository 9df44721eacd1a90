"""What the engine logs while a command works: shown beside the progress, tracebacks on demand."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from perdure.cli.exits import debugging

if TYPE_CHECKING:
    from perdure.cli.progress import Screen


class _Beside(logging.Handler):
    """Turns log records into notes of the screen, with the values of secrets taken out."""

    def __init__(self, screen: Screen, redact: Callable[[str], str]) -> None:
        super().__init__(logging.DEBUG if debugging() else logging.WARNING)
        self._screen = screen
        self._redact = redact

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            if not debugging():
                text = brief(text)
            self._screen.note(f"{record.levelname.lower()}: {self._redact(text)}")
        except Exception:  # whoever logs must not fail because it cannot be shown
            self.handleError(record)


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
def log_to(screen: Screen, redact: Callable[[str], str]) -> Iterator[None]:
    """Show warnings and errors of the engine and of steps (all of it with PERDURE_DEBUG=1)."""
    logger = logging.getLogger("perdure")
    handler = _Beside(screen, redact)
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
