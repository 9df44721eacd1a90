"""Asks a service until a report is ready, sleeping in between, and gives up after a day."""

import msgspec

from perdure import Context, Failure, Retry, step, workflow


class Report(msgspec.Struct):
    """Where the report stands."""

    ready: bool
    url: str = ""


class TooSlow(Failure, kind="report-too-slow"):
    """The report was not ready in time."""


@step(retry=3)
async def order_report(month: str) -> str:
    return f"report-{month}"


@step(retry=Retry(5, max_elapsed="10m"), timeout="20s")
async def look(report: str, times: int) -> Report:
    """Ask the service. This one is ready at the third look."""
    print(f"-> {report}: look {times}")
    return Report(times >= 3, f"https://reports.example/{report}.pdf")


@workflow(max_duration="1d")
async def monthly_report(ctx: Context, month: str) -> str:
    report = await order_report(month)
    pause = 1.0
    for times in range(1, 100):
        found = await look(report, times)
        if found.ready:
            return found.url
        await ctx.sleep(pause)
        pause = min(pause * 2, 600)
    raise TooSlow(f"{report} is not ready after {times} looks")
