"""What happens in three days, tested in none: `pytest test_onboarding.py`."""

from onboarding import User, email_confirmed, onboard, send_welcome
from perdure import Failure
from perdure.testing import play

ANN = User("42", "ann@example.com")


def test_who_confirms_in_time_is_in() -> None:
    played = play(
        onboard, ANN, steps={send_welcome: None}, signals=[("71h", email_confirmed, "t-1")]
    )
    assert played.result() == "t-1"


def test_who_does_not_confirm_is_let_go_after_three_days() -> None:
    played = play(onboard, ANN, steps={send_welcome: None})
    assert (played.result(), played.seconds) == ("expired", 72 * 3600)


def test_a_mail_service_that_is_down_for_a_moment_is_asked_again() -> None:
    played = play(onboard, ANN, steps={send_welcome: [Failure("down"), Failure("down"), None]})
    assert [call.at for call in played.calls_of(send_welcome)] == [0, 1, 3]
