"""Workflows in Python for tests of the command line."""

from __future__ import annotations

HELLO = '''
"""A sign-up that waits for its confirmation, and a cleaner."""

import asyncio
from pathlib import Path

from perdure import After, Channel, Context, Failure, Retry, Signal, StepFailed, TimedOut
from perdure import current_step, step, workflow

confirmed = Signal("confirmed", str)
plan = Channel("plan", str)


def called(name):
    with open("calls.log", "a") as log:
        log.write(f"{name} {current_step().attempt}\\n")


@step
def mail(to: str, text: str) -> None:
    called("mail")
    print(f"-> {to}: {text}")


@step(retry=Retry(2, initial=0.01))
def refuse(text: str) -> str:
    called("refuse")
    if Path("mended").exists():
        return text
    raise Failure("no luck today", kind="unlucky")


@workflow(max_duration="7d")
async def sign_up(ctx: Context, email: str) -> str:
    await mail(email, "please confirm")
    try:
        name = await ctx.wait(confirmed, timeout="72h")
    except TimedOut:
        return "expired"
    await mail(email, f"welcome, {name}")
    return "done"


@workflow(max_duration="1h")
async def unlucky(ctx: Context) -> str:
    try:
        await ctx.wait(confirmed, timeout=0.01)
    except TimedOut:
        pass
    await mail("ann", "before")
    return await refuse("at last")


@workflow(max_duration="1h")
async def chooser(ctx: Context) -> str:
    try:
        return str(await ctx.select(confirmed, plan, After("1h")))
    finally:
        await mail("ann", "cleaned up")


@workflow(max_duration="1h")
async def parent(ctx: Context) -> str:
    return "child: " + await ctx.child(sign_up, "a", id="s")
'''


ONE = HELLO.partition('@workflow(max_duration="1h")')[0]


def changed(old: str, new: str) -> str:
    """ONE with a change that its runs do not survive."""
    assert old in ONE
    return ONE.replace(old, new)
