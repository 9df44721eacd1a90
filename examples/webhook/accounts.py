"""An account for whoever registered: set up step by step, and taken down when that fails."""

import asyncio
from pathlib import Path

import msgspec

from perdure import Failure, Retry, Saga, SagaContext


class UserRegistered(msgspec.Struct):
    """The event: what a delivery says, and what the saga is started with."""

    user: str
    email: str


class Bounced(Failure, kind="bounced", permanent=True):
    """Nobody reads mail there. Asking again would not help."""


async def open_account(ctx: SagaContext[UserRegistered]) -> str:
    await ask(ctx, "open the account", 0.1)
    return f"account-{ctx.payload.user}"


async def close_account(ctx: SagaContext[UserRegistered]) -> None:
    await ask(ctx, "close the account", 0.1)


async def make_workspace(ctx: SagaContext[UserRegistered]) -> str:
    await ask(ctx, "make the workspace", 1)
    return f"workspace-{ctx.payload.user}"


async def remove_workspace(ctx: SagaContext[UserRegistered]) -> None:
    # Also where nobody knows whether it was made: removing what is not there has to be fine.
    await ask(ctx, "remove the workspace", 3)


async def welcome(ctx: SagaContext[UserRegistered]) -> None:
    if ctx.payload.email.endswith("@nowhere.invalid"):
        raise Bounced(f"{ctx.payload.email} takes no mail")
    await ask(ctx, f"welcome them to {ctx.output('workspace')}", 0.1)


again = Retry(20, jitter=0.2)
onboarding = (
    Saga("onboarding", UserRegistered, max_duration="1d", retention="60d")
    .step("account", open_account, undo=close_account, retry=5, undo_retry=again)
    .step("workspace", make_workspace, undo=remove_workspace, retry=5, undo_retry=again)
    .step("welcome", welcome, retry=5)
    .started_by(UserRegistered)
)


async def ask(ctx: SagaContext[UserRegistered], what: str, seconds: float) -> None:
    """Ask a service, which does each thing once for a key, however often it is asked."""
    note(f"asked to {what} ({ctx.payload.user})")
    await asyncio.sleep(seconds)
    if is_new(ctx.idempotency_key):
        note(f"did     {what} ({ctx.payload.user})")


def is_new(key: str) -> bool:
    """Whether the services see this key for the first time: a file can be made only once."""
    folder = Path("services")
    folder.mkdir(exist_ok=True)
    try:
        (folder / key).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def note(line: str) -> None:
    """The services' own log."""
    with Path("services.log").open("a", encoding="utf-8") as log:
        log.write(f"{line}\n")
