"""`python -m tests.docs.errors` writes docs/reference/errors.md anew."""

from __future__ import annotations

from tests.docs.errors.page import PAGE, page_of

if __name__ == "__main__":
    PAGE.write_text(page_of(), encoding="utf-8")
    print(PAGE)  # noqa: T201
