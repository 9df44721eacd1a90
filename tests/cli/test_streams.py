"""Standard streams that are closed, full, or that nobody reads any more: no traceback, the exit
code that is documented, and no work that fails for them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import perdure, run

FULL = Path("/dev/full")
pytestmark = pytest.mark.usefixtures("folder")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no device that is full")


def shell(line: str) -> tuple[int, str]:
    """A line of sh, in which $perdure is the command: the exit code, and what could be read."""
    done = subprocess.run(
        ["sh", "-c", line.replace("$perdure", f"'{sys.executable}' -m perdure")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert "unexpected" not in said, said
    return done.returncode, said


@pytest.fixture
def done(folder: Path) -> None:
    run("greeting.json", "--id", "ann", "--input", '{"name": "Ann"}')


@pytest.mark.usefixtures("done")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("$perdure list <&- >&- 2>&-", 0),
        ("$perdure show greeting/ann --json >&-", 0),
        ("$perdure show greeting/none >&- 2>&-", 3),
        ("$perdure import - <&-", 2),
        ("$perdure lint - <&-", 2),
        ("$perdure start greeting --input - <&-", 2),
    ],
)
def test_a_closed_stream_is_one_from_which_nothing_comes_and_where_nothing_stays(
    line: str, code: int
) -> None:
    assert shell(line)[0] == code


def test_a_run_whose_streams_are_closed_is_done_and_its_files_are_whole() -> None:
    line = '$perdure run greeting.json --app steps.py --id bob --input \'{"name": "Bob"}\''
    assert shell(f"{line} <&- >&- 2>&-")[0] == 0
    assert '"hello, Bob"' in perdure("show", "greeting/bob", "--history", "--json").stdout
    assert perdure("result", "greeting/bob").stdout == '{"said": "HELLO, BOB"}\n'


@needs_full
@pytest.mark.usefixtures("done")
@pytest.mark.parametrize(
    "words", ["list", "list --json", "export greeting/ann", "result greeting/ann"]
)
def test_output_that_cannot_be_written_is_told(words: str) -> None:
    code, said = shell(f"$perdure {words} >{FULL}")
    assert (code, said) == (74, "perdure: the output cannot be written: No space left on device\n")


@needs_full
@pytest.mark.usefixtures("done")
@pytest.mark.parametrize(
    ("words", "code"),
    [("list --no-such", 2), ("show greeting/none", 3), ("no-such", 2), ("show x/y --json", 3)],
)
def test_a_message_that_cannot_be_written_leaves_the_exit_code_as_it_is(
    words: str, code: int
) -> None:
    assert shell(f"$perdure {words} 2>{FULL}")[0] == code


@needs_full
def test_what_a_step_prints_and_nobody_can_take_does_not_fail_it() -> None:
    Path("loud.py").write_text(
        "import sys\nfrom perdure import step\n"
        "@step\ndef greet(name: str) -> str:\n"
        "    print('x' * 100_000, flush=True)\n    print('y', file=sys.stderr, flush=True)\n"
        "    return f'hello, {name}'\n"
        "@step\ndef shout(text: str) -> str:\n    return text.upper()\n",
        encoding="utf-8",
    )
    line = '$perdure run greeting.json --app loud.py --id eve --input \'{"name": "Eve"}\''
    assert shell(f"{line} 2>{FULL}") == (0, '{"said": "HELLO, EVE"}\n')


@pytest.mark.usefixtures("done")
def test_an_export_takes_the_place_of_files_alone(folder: Path) -> None:
    device = folder / "device"
    device.symlink_to("/dev/null")
    perdure("export", "greeting/ann", "--output", "device", "--force")
    assert device.is_symlink()
    assert not device.is_file()


@pytest.mark.usefixtures("done")
def test_an_export_through_a_link_leaves_the_link(folder: Path) -> None:
    (folder / "link").symlink_to("there.jsonl")
    perdure("export", "greeting/ann", "--output", "link")
    perdure("export", "greeting/ann", "--output", "link", "--force")
    assert (folder / "link").is_symlink()
    assert (folder / "there.jsonl").read_bytes().startswith(b'{"perdure"')


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "ascii:strict"])
def test_what_an_encoding_does_not_have_is_printed_as_python_writes_it(encoding: str) -> None:
    named = '--id zé✓ --input \'{"name": "Zoë ✓"}\''
    go = f"PYTHONIOENCODING={encoding} $perdure"
    code, said = shell(f"{go} run greeting.json --app steps.py {named} 2>&1 | cat -v")
    assert (code, "HELLO" in said) == (0, True)
    for command in ("show", "why", "result", "watch"):
        assert shell(f"{go} {command} greeting/zé✓ | cat -v")[0] == 0
    code, said = shell(f"{go} show greeting/zé✓ --json")
    assert said.isascii()
    assert json.loads(said)["id"] == "zé✓"
    code, said = shell(f"{go} list --json")
    assert [one["id"] for one in json.loads(said)["runs"]] == ["zé✓"]
