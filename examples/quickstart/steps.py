"""The steps of hello.json: plain functions. What each returns is recorded once it has ended."""

from __future__ import annotations

import time

from perdure import step


@step
def greet(name: str) -> str:
    print(f"-> hello, {name}")
    return f"hello, {name}"


@step
def think() -> None:
    time.sleep(5)  # long enough to kill the process


@step
def farewell(greeting: str) -> str:
    print("-> goodbye")
    return f"{greeting}, and goodbye"
