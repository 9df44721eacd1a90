"""An order whose parcels are runs of their own."""

import msgspec

from perdure import Context, Signal, step, workflow


class Order(msgspec.Struct):
    """What was ordered: items by warehouse."""

    id: str
    parcels: dict[str, list[str]]


class Parcel(msgspec.Struct):
    """What one warehouse sends."""

    order: str
    warehouse: str
    items: list[str]


#: Said by a warehouse when its courier has come.
picked_up = Signal("picked-up", str)


@step
async def pack(parcel: Parcel) -> int:
    print(f"-> {parcel.warehouse} packs {', '.join(parcel.items)}")
    return len(parcel.items)


@step
async def unpack(parcel: Parcel) -> None:
    print(f"-> {parcel.warehouse} unpacks {', '.join(parcel.items)}")


@step
async def thank(order: str, tracking: list[str]) -> None:
    print(f"-> {order} is on its way: {', '.join(tracking)}")


@workflow(max_duration="3d")
async def ship_parcel(ctx: Context, parcel: Parcel) -> str:
    await pack(parcel)
    try:
        return await ctx.wait(picked_up)
    except BaseException:
        await unpack(parcel)
        raise


@workflow(max_duration="7d")
async def ship_order(ctx: Context, order: Order) -> list[str]:
    parcels = [Parcel(order.id, place, items) for place, items in order.parcels.items()]
    children = [
        ctx.child(ship_parcel, parcel, id=f"{order.id}-{parcel.warehouse}") for parcel in parcels
    ]
    tracking = [one async for one in ctx.as_completed(children)]
    await thank(order.id, sorted(tracking))
    return sorted(tracking)
