"""A new user is welcomed, confirms the address within three days, or is let go."""

import msgspec

from perdure import Context, Retry, Signal, TimedOut, current_step, step, workflow


class User(msgspec.Struct):
    """Who signed up."""

    id: str
    email: str


#: What the link in the mail sends: its token.
email_confirmed = Signal("email-confirmed", str)


@step(retry=Retry(5, initial=1, factor=2, max_delay=60), timeout="30s")
async def send_welcome(user: User) -> None:
    # A mail service that takes such a key sends the mail once, however often it is asked.
    print(f"-> {user.email}: please confirm (key {current_step().idempotency_key[:8]})")


@workflow(max_duration="96h", retention="7d")
async def onboard(ctx: Context, user: User) -> str:
    await send_welcome(user)
    try:
        token = await ctx.wait(email_confirmed, timeout="72h")
    except TimedOut:
        return "expired"
    return token
