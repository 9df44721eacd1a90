"""An agent: a model thinks, tools act, and a person allows each dangerous call."""

import msgspec

from perdure import Context, Retry, Signal, StepFailed, TimedOut, step, workflow


class ToolCall(msgspec.Struct):
    """What the model wants done."""

    id: str
    name: str
    args: dict[str, str]
    dangerous: bool = False


class Reply(msgspec.Struct):
    """What the model says; without calls it is its last word."""

    text: str
    calls: list[ToolCall] = []


class Message(msgspec.Struct):
    """A line of the conversation."""

    role: str
    text: str


class Approve(msgspec.Struct, tag="approve"):
    by: str


class Reject(msgspec.Struct, tag="reject"):
    why: str


#: A mailbox for each call: `decision["call-2"]`. One approval must not do for all of them.
decision = Signal("decision", Approve | Reject)

ROUNDS = 20


@step(retry=Retry(4, max_elapsed="5m"), timeout="10m")
async def think(history: list[Message]) -> Reply:
    """Ask the model. This one has learnt its lines by heart."""
    said = [message.text for message in history if message.role == "tool"]
    if not said:
        search = ToolCall("call-1", "search", {"to": "Lisbon"})
        return Reply("Let me look for flights.", [search])
    if len(said) == 1:
        book = ToolCall("call-2", "book", {"flight": "TP 123"}, dangerous=True)
        return Reply("TP 123 fits. I book it.", [book])
    return Reply(f"Done: {said[-1]}.")


@step(timeout="2m")
async def use_tool(call: ToolCall) -> str:
    """Do what a call says."""
    print(f"-> {call.name} {call.args}")
    return {"search": "TP 123 at 10:40", "book": "booked TP 123"}[call.name]


@workflow(max_duration="7d")
async def agent(ctx: Context, goal: str) -> str:
    history = [Message("user", goal)]
    for _ in range(ROUNDS):
        reply = await think(history)
        history.append(Message("assistant", reply.text))
        if not reply.calls:
            return reply.text
        for call in reply.calls:
            history.append(Message("tool", await answer(ctx, call)))
    return "gave up"


async def answer(ctx: Context, call: ToolCall) -> str:
    """What a call came to, for the model to read."""
    if call.dangerous:
        try:
            verdict = await ctx.wait(decision[call.id], timeout="1d")
        except TimedOut:
            verdict = Reject("nobody answered within a day")
        if isinstance(verdict, Reject):
            return f"refused: {verdict.why}"
        ctx.logger.info("%s was approved by %s", call.id, verdict.by)
    try:
        return await use_tool.with_options(label=call.name)(call)
    except StepFailed as failure:
        return f"error: {failure.message}"
