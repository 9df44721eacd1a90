"""What a workflow may not ask its event loop for, and what to write instead.

A recorded run is decided again from its journal: whatever reaches outside the journal (sockets,
threads, subprocesses, signals of the process) belongs in a step, whose outcome is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn


class ForbiddenInWorkflow(RuntimeError):
    """The workflow's code asked for something that cannot be recorded or repeated."""


_THREADS: Final = "a `def` step runs in a thread of its own: move the function into a @step"
_NETWORK: Final = "talk to the network inside a @step, and return what the workflow needs"
_PROCESSES: Final = "start processes inside a @step, and return what the workflow needs"
_FILES: Final = "watch files and pipes inside a @step"
_SIGNALS: Final = "a workflow is told things by perdure.Signal, not by signals of its process"
_LOOP: Final = "the engine runs this loop: await what is to be done instead"
_SAFE: Final = "no thread may reach into a workflow: let the thread's work be a @step"

#: Method of an event loop → what to write instead.
ADVICE: Final = {
    **dict.fromkeys(("run_in_executor", "set_default_executor"), _THREADS),
    **dict.fromkeys(("shutdown_default_executor",), _THREADS),
    **dict.fromkeys(
        (
            "getaddrinfo", "getnameinfo", "create_connection", "create_server", "start_tls",
            "create_unix_connection", "create_unix_server", "connect_accepted_socket",
            "create_datagram_endpoint", "sendfile", "sock_recv", "sock_recv_into", "sock_recvfrom",
            "sock_recvfrom_into", "sock_sendall", "sock_sendto", "sock_connect", "sock_accept",
            "sock_sendfile",
        ),
        _NETWORK,
    ),
    **dict.fromkeys(("subprocess_shell", "subprocess_exec"), _PROCESSES),
    **dict.fromkeys(
        (
            "connect_read_pipe", "connect_write_pipe", "add_reader", "remove_reader", "add_writer",
            "remove_writer",
        ),
        _FILES,
    ),
    **dict.fromkeys(("add_signal_handler", "remove_signal_handler"), _SIGNALS),
    **dict.fromkeys(
        (
            "run_forever", "run_until_complete", "stop", "close", "shutdown_asyncgens", "set_debug",
            "set_task_factory", "set_exception_handler",
        ),
        _LOOP,
    ),
    "call_soon_threadsafe": _SAFE,
}  # fmt: skip


def reached_into() -> ForbiddenInWorkflow:
    """A future, an event or a queue of a workflow was released from outside of its code."""
    return ForbiddenInWorkflow(
        "a workflow's future, event, queue or task was touched from outside of its code, which is "
        "decided again from its journal: no thread and no step may reach into a workflow: let "
        "the thread's work be a @step that returns it, or send it by perdure.Signal"
    )


def refusal(method: str) -> Callable[..., NoReturn]:
    """The method that refuses."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise ForbiddenInWorkflow(
            f"{method}() cannot be used inside a workflow, which is decided again from its "
            f"journal: {ADVICE[method]}"
        )

    refuse.__name__ = method
    return refuse
