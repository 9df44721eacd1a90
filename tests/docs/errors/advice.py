"""What no docstring says of an exception: what to do about it, and whether to try again."""

from __future__ import annotations

from typing import Final, NamedTuple


class Advice(NamedTuple):
    """`do`: what to do. `short`: whether the same call may be made again, in a word or two;
    `again`: what becomes of it then."""

    do: str
    short: str
    again: str


class Group(NamedTuple):
    """Exceptions about which the same people have to do something."""

    title: str
    intro: str
    advice: dict[str, Advice]


_MEND: Final = "Nothing was started or changed. It is the same each time until it is mended."


def _mend(do: str) -> Advice:
    return Advice(do, "no", _MEND)


GROUPS: Final = [
    Group(
        "All of them",
        "",
        {
            "PerdureError": Advice(
                "Catch it last, where whatever perdure has to say is handled alike. Raised as "
                "itself it says that a client or an engine is closed, or is not open yet: use it "
                "inside its `with` block.",
                "see the class",
                "Raised as itself: nothing was done, so yes, with a client that is open.",
            ),
        },
    ),
    Group(
        "The programmer: a declaration is wrong",
        "Raised where something is declared, loaded or given to an engine, before anything runs. "
        "All are `DefinitionError`s: catch that one.",
        {
            "DefinitionError": _mend(
                "Mend everything in `problems`: all that is wrong is there, not the first only."
            ),
            "GraphError": _mend(
                "Mend what `problems` lists: records with `line`, `column`, `pointer`, `node`, "
                "`message` and `hint`. `perdure lint FILE` shows the same, and warnings."
            ),
            "InvalidName": _mend(
                "Use 1-64 characters of `a-z 0-9 -`, with no hyphen at either end. Where the name "
                "comes from a function's, say it: `@step(name=…)`."
            ),
            "InvalidId": Advice(
                "Use 1-256 characters without control characters. Ids that come from outside (a "
                "header, a form) are to be checked, or this caught: it is the one of this group "
                "that a caller's data can bring about. An idempotency key that cannot be an id is "
                "an `InvalidRequest`.",
                "no",
                "Nothing was started. Ask with another id.",
            ),
            "InvalidOptions": _mend(
                "Use a value in the range that the message names. Durations are seconds, text "
                'such as `"90s"` or `"7d"`, or a `timedelta`.'
            ),
            "DuplicateName": _mend(
                "Give one of the two another name, or make a second engine. Former names "
                "(`aliases=`) count as well."
            ),
            "MissingMaxDuration": _mend(
                'Say how long a run may take at most, `@workflow(max_duration="7d")`; `None`, said '
                "explicitly, is no end."
            ),
        },
    ),
    Group(
        "The caller: the request does not apply",
        "Raised by the call that asked; nothing was written. To ask the same again gives the same, "
        "unless the run or the store has changed meanwhile.",
        {
            "InvalidRequest": Advice(
                "Mend the value or the call that the message names, with its place. From outside "
                "(a form, a webhook) it is the sender's mistake: answer 400.",
                "no",
                "It would be refused again.",
            ),
            "PayloadTooLarge": Advice(
                "Keep the value elsewhere (a file, an object store, your own table) and pass a "
                "reference.",
                "no",
                "It would be refused again.",
            ),
            "NoCases": Advice(
                "Give `select` at least one case. Where cases come from a list, ask before whether "
                "it is empty.",
                "no",
                "In a workflow that does not catch it the run fails, with kind `NoCases`.",
            ),
            "NotFound": Advice(
                "Look at the spelling of workflow and id, and at the store's URL. A name without "
                "code is known once a worker that has it has opened the store. A message to a run "
                "that has ended is `NotFound` as well.",
                "later",
                "Nothing was done. It may be there later: a run once it is started, a definition "
                "once a worker or `publish` has brought it.",
            ),
            "AlreadyStarted": Advice(
                "Take `error.run`: it is the handle of the run that is there. If that is what you "
                'want anyway, start with `if_exists="join"` or with `idempotency_key=`.',
                "no need",
                "The run is there. A second start of it changes nothing, however often.",
            ),
            "RunFinished": Advice(
                "Leave it, or let the run go on first: `Run.retry`.",
                "no",
                "An end stays, until a retry.",
            ),
            "RunActive": Advice(
                "Wait for its end, or `Run.cancel` it first.",
                "later",
                "Nothing was done. Ask again when the run has ended.",
            ),
            "Unsupported": Advice(
                "Use a store or a driver that can, or do without. What each driver can do is told "
                "by its conformance report.",
                "no",
                "Refused before anything was done, and would be again.",
            ),
        },
    ),
    Group(
        "Outcomes: what is recorded of a step or a run",
        "Raised by `Run.result`, `Client.run` and `Context.child` for how a run ended, and inside "
        "a workflow for how a step did. To ask again gives the same outcome: it is recorded. To "
        "*do* it again is a retry of the run, or another run.",
        {
            "Failure": Advice(
                "Derive classes of your own from it, raise them in steps, and catch them by class "
                "wherever the outcome is asked for. `kind` is what is recorded, and by what "
                "`retry_on` of documents goes.",
                "by a retry",
                "A step is tried again by its `retry`, unless the failure is `permanent`. A run: "
                "`Run.retry` when the cause is mended.",
            ),
            "StepFailed": Advice(
                "In a workflow: catch it around the call, or let the run fail. Elsewhere it is the "
                "`__cause__` of what a graph or a saga raises: `step` and `attempt` say where.",
                "by a retry",
                "Its attempts are used up. `Run.retry` gives it new ones.",
            ),
            "RunFailed": Advice(
                "Look at `kind`, the message and `details`; `perdure why WORKFLOW/ID` tells what "
                "every attempt came to. If the kind is one of your own, import the module of its "
                "class: then that class is raised instead. After a saga `details` says what was "
                "`undone`, whose undo failed (`undo_failed`), and whose end nobody knows "
                "(`unknown`): somebody must look at those of the last two that are not in the "
                "first. `compensated`, of every failure of a run: something was undone, and there "
                "is no such step.",
                "by a retry",
                "`Run.retry` goes on from what failed, and does again what a saga undid. Another "
                "run with another id is safe once nothing of this one stands.",
            ),
            "Permanent": Advice(
                "Raise it in a step or an undo, around what another attempt would not help: "
                "`raise Permanent(error)`. Catch the class of `error` or `Permanent`, it is both.",
                "by a retry",
                "No further attempt is made. `Run.retry` makes new ones.",
            ),
            "TimedOut": Advice(
                "Find out which time was over. `Run.result(timeout=)`: only your waiting, the run "
                "goes on, and `Run.status` says `running`. A run's `max_duration`: it has failed. "
                "A `timeout=` of `wait` or `receive` inside a workflow: catch it there. A step's: "
                "it may have done its work all the same, so give it the idempotency key.",
                "yes, to wait",
                "Waiting again is always safe. A run that is over its time is retried by "
                "`Run.retry`, and has its time anew.",
            ),
            "Canceled": Advice(
                "Usually nothing: somebody wanted it. The message is the reason that was given.",
                "by a retry",
                "`Run.retry` lets the run go on.",
            ),
        },
    ),
    Group(
        "The machinery",
        "Trouble below the runs. It holds them up, and is no outcome of theirs.",
        {
            "StoreError": Advice(
                "An engine asks again until the store answers, so a call of it waits: `timeout=` "
                "of `run` bounds that, and `asyncio.timeout` around any call. A client gives up "
                "after some seconds: try again, after a moment; to a web client answer 503. When "
                "it stays, the message says what the store lacks (a folder, rights, room on the "
                "disk, a backup), and `perdure doctor` looks at all of it.",
                "yes, with an id",
                "It may or may not have been recorded. `start`, `run` and `emit` with the same "
                "`id` or `idempotency_key` count once; without one, a second start may be a second "
                "run. A signal with the same `dedupe_key` counts once.",
            ),
            "PayloadMissing": Advice(
                "You meet it as the reason for which a run is stalled (`perdure why`). Somebody "
                "deleted a part of the database, or restored half of it: restore it whole.",
                "no",
                "The value would not come back. `Run.unpause` tries again once it is there.",
            ),
            "NonDeterminism": Advice(
                "Compare the two calls that the message shows, and run code that still does what "
                "is recorded, or guard the change with `ctx.patched()`. A run that meets it while "
                "it works does not raise it: it stalls, and `perdure why` shows the same.",
                "no",
                "Nothing was changed. It would be the same until the code fits.",
            ),
        },
    ),
]  # fmt: skip

ADVICE: Final = {name: advice for group in GROUPS for name, advice in group.advice.items()}
