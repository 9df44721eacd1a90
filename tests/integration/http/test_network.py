"""The network of an engine's HTTP nodes: one pool, the host list, TLS, a proxy, no aiohttp."""

from __future__ import annotations

import asyncio
import logging
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from perdure.engine.handlers.http import HttpHandler
from perdure.model.errors import Failure
from tests.integration.http.servers import handling, once, send, serving, talking


def test_connections_are_used_again_and_cookies_are_not() -> None:
    peers: list[Any] = []
    cookies: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        cookies.append(request.headers.get("Cookie"))
        return web.Response(text="x", headers={"Set-Cookie": "session=one; Path=/"})

    async def main() -> None:
        async with serving(answer) as base, handling() as handler:
            for _ in range(3):
                await send(handler, {"url": base})

    asyncio.run(main())
    assert len(set(peers)) == 1
    assert cookies == [None, None, None]


def test_no_more_connections_than_allowed_are_open_at_a_time() -> None:
    now, most = 0, 0

    async def answer(_: web.Request) -> web.Response:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(20):
            await asyncio.sleep(0)
        now -= 1
        return web.Response()

    async def main() -> None:
        async with serving(answer) as base, handling(connections=2) as handler:
            await asyncio.gather(*(send(handler, {"url": base}) for _ in range(8)))

    asyncio.run(main())
    assert most == 2


def test_a_closed_handler_closes_its_connections_and_opens_new_ones_when_asked() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response()

    async def main() -> None:
        async with serving(answer) as base, handling() as handler:
            await send(handler, {"url": base})
            session = handler._session
            await handler.close()
            assert session is not None
            assert session.closed
            assert (await send(handler, {"url": base}))["status"] == 200

    asyncio.run(main())


def test_a_host_off_the_list_hears_nothing() -> None:
    async def main() -> list[bytes]:
        async with talking() as (base, heads):
            with pytest.raises(Failure) as error:
                await once({"url": base}, allow_hosts=["shop.example"])
            assert (error.value.kind, error.value.permanent) == ("http-forbidden", True)
            return heads

    assert asyncio.run(main()) == []


def test_an_address_on_the_list_is_reached_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response()

    async def main() -> None:
        async with serving(answer) as base:
            await once({"url": base}, allow_hosts=["127.0.0.1"])
            url = base.replace("127.0.0.1", "localhost")
            await once({"url": url}, allow_hosts=["localhost"])

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert caplog.records == []


def test_requests_go_through_the_proxy() -> None:
    async def main() -> bytes:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        async with talking(head) as (proxy, heads):
            output = await once({"url": "http://shop.example/a"}, proxy=proxy)
            assert output["body"] == "ok"
            return heads[0]

    assert asyncio.run(main()).startswith(b"GET http://shop.example/a HTTP/1.1\r\n")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=test", "-keyout", "key.pem"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", "cert.pem"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    both = folder / "both.pem"
    both.write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
    return both


def secure(certificate: Path, *, ask: bool = False, **options: Any) -> dict[str, Any]:
    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        return web.json_response({"peer": bool(peer)})

    async def main() -> dict[str, Any]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        if ask:
            context.load_verify_locations(certificate)
            context.verify_mode = ssl.CERT_REQUIRED
        async with serving(answer, ssl_context=context) as base:
            return await once({"url": base}, **options)

    return asyncio.run(main())


def test_a_certificate_nobody_vouches_for_is_refused(certificate: Path) -> None:
    with pytest.raises(Failure, match="certificate") as error:
        secure(certificate)
    assert error.value.kind == "http-connect"


def test_a_file_of_authorities_vouches_for_it(certificate: Path) -> None:
    assert secure(certificate, verify=str(certificate))["status"] == 200


def test_checking_can_be_turned_off_and_that_is_logged(
    certificate: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert secure(certificate, verify=False)["status"] == 200
    assert "verify=False is for tests" in caplog.text


def test_the_client_s_own_certificate_is_shown(certificate: Path) -> None:
    file = str(certificate)
    assert secure(certificate, ask=True, verify=file, cert=file)["body"] == {"peer": True}


FIRST_REQUEST = """
import asyncio, sys, threading
from perdure.engine.handlers.http import HttpHandler
from tests.integration.http.servers import send

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "aiohttp.client":  # as the package is executed
            print(threading.current_thread() is threading.main_thread())

async def main():
    sys.meta_path.insert(0, Watch())
    handler = HttpHandler()
    both = (send(handler, {"url": "http://127.0.0.1:9/"}) for _ in range(2))
    said = await asyncio.gather(*both, return_exceptions=True)
    print([one.kind for one in said])

for name in [name for name in sys.modules if name.partition(".")[0] == "aiohttp"]:
    del sys.modules[name]
asyncio.run(main())
"""


def test_the_first_request_does_not_keep_the_loop_waiting_for_an_import() -> None:
    command = [sys.executable, "-c", FIRST_REQUEST]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    on_main_thread, kinds = done.stdout.splitlines()
    assert on_main_thread == "False"
    assert kinds == "['http-connect', 'http-connect']"


def test_without_aiohttp_a_node_fails_for_good_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert HttpHandler.available()
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    assert not HttpHandler.available()
    with pytest.raises(Failure, match=r"pip install 'perdure\[http\]'") as error:
        asyncio.run(once({"url": "http://127.0.0.1/"}))
    assert (error.value.kind, error.value.permanent) == ("http-unavailable", True)
