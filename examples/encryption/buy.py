"""Buys something, on `buy.db`; prints the result, and whether the card's number can be found."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sealed import buy, codec, confirmed

from perdure import Engine

CARD = "4111 1111 1111 1111"


async def main() -> None:
    async with Engine("sqlite:///buy.db", [buy], codec=codec()) as engine:
        run = await engine.start(buy, CARD, id="1", if_exists="join")
        await run.signal(confirmed, "Ann", dedupe_key="confirmation")
        print(await run.result(timeout="1m"))


def is_found() -> bool:
    files = Path().glob("buy.db*")
    return any(CARD.encode() in file.read_bytes() for file in files if file.is_file())


asyncio.run(main())
print("the card's number is in the database:", is_found())
