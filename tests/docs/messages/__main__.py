"""`python -m tests.docs.messages` writes docs/reference/messages.md anew."""

from __future__ import annotations

from tests.docs.messages import every
from tests.docs.messages.page import PAGE, page_of

if __name__ == "__main__":
    text = page_of(every.SECTIONS, every.messages())
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE}: {sum(len(s.cases) for s in every.SECTIONS)} messages")  # noqa: T201
