"""Types that must hold for sagas, and mistakes that must be found (lines that end in `# E`)."""

from typing import assert_type

from perdure import Canceled, Engine, Failure, Outputs, RunFailed, Saga, SagaContext, TimedOut


class CardDeclined(Failure, kind="card-declined-of-a-saga"): ...


async def charge(ctx: SagaContext[str]) -> str:
    assert_type(ctx.payload, str)
    ctx.set("tries", ctx.attempt)
    ctx.set(5, True)  # E
    return "ch_1"


pay = Saga("pay", str).step("charge", charge)


async def ends(engine: Engine) -> None:
    try:
        assert_type(await engine.run(pay, "ann"), Outputs)
    except RunFailed as error:
        assert_type(error.compensated, bool)
    except TimedOut as error:
        assert_type(error.compensated, bool)
    except Canceled as error:
        assert_type(error.compensated, bool)
        _ = error.undone  # E
    except CardDeclined as error:
        assert_type(error.compensated, bool)
