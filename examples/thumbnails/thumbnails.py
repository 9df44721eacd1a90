"""Makes thumbnails of many pictures, a few at a time, and says which ones could not be made."""

import asyncio

import msgspec

from perdure import Context, Failure, step, workflow


class Sheet(msgspec.Struct):
    """What came of it."""

    made: list[str]
    broken: list[str]
    size: int


class Damaged(Failure, kind="damaged", permanent=True):
    """The picture cannot be read, however often it is tried."""


@step(retry=2)
async def list_pictures(album: str) -> list[str]:
    return [f"{album}/{number:03}.jpg" for number in range(12)]


@step(retry=3, timeout="1m")
def shrink(picture: str) -> str:
    # A `def` step runs in a thread: it may compute, and call what blocks.
    if picture.endswith("007.jpg"):
        raise Damaged("the file is damaged")
    return picture.replace(".jpg", ".small.jpg")


@step
async def album_size(album: str) -> int:
    return 12


@step
async def publish(album: str, small: list[str]) -> None:
    print(f"-> {album}: {len(small)} pictures")


@workflow(max_duration="6h")
async def thumbnails(ctx: Context, album: str) -> Sheet:
    # Two things at once, as asyncio does it.
    pictures, size = await asyncio.gather(list_pictures(album), album_size(album))
    # Many things, four at a time; a failure stands in the place of its result.
    results = await ctx.map(shrink, pictures, concurrency=4, on_failure="collect")
    made = [one for one in results if isinstance(one, str)]
    broken = [p for p, one in zip(pictures, results, strict=True) if isinstance(one, Failure)]
    await publish(album, made)
    return Sheet(made, broken, size)
