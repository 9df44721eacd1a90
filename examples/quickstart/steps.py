"""What hello.yaml calls."""

import time

from perdure import step


@step
def greet(name: str) -> str:
    print(f"-> hello, {name}")
    return f"hello, {name}"


@step
def think() -> None:
    time.sleep(10)  # long enough to kill the process


@step
def part(greeting: str) -> str:
    print("-> goodbye")
    return f"{greeting}, and goodbye"
