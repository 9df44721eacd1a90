"""A sign-up that waits for its confirmation."""

from perdure import Context, Signal, TimedOut, step, workflow

confirmed = Signal("confirmed", str)


@step(retry=3)
def mail(to: str, text: str) -> None:
    print(f"-> {to}: {text}")


@workflow(max_duration="7d")
async def sign_up(ctx: Context, email: str) -> str:
    await mail(email, "please confirm")
    try:
        name = await ctx.wait(confirmed, timeout="72h")
    except TimedOut:
        return "expired"
    await mail(email, f"welcome, {name}")
    return "done"
