"""The host list: what it lets through, what it refuses, when it warns; options that cannot work."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from perdure.engine.handlers.http import HttpHandler
from perdure.engine.handlers.http_guard import HostList, WatchedResolver, is_private
from perdure.engine.handlers.http_options import HttpOptions
from perdure.engine.handlers.http_url import read_url
from perdure.model.errors import Failure, InvalidOptions


@pytest.mark.parametrize(
    ("pattern", "url", "answer"),
    [
        ("api.example.com", "https://api.example.com/", True),
        ("API.example.com.", "http://api.EXAMPLE.com.:81/", True),
        ("api.example.com", "https://xapi.example.com/", False),
        ("api.example.com", "https://api.example.com.evil.example/", False),
        ("api.example.com", "https://evil.example/?api.example.com", False),
        ("*.example.com", "https://a.b.example.com/", True),
        ("*.example.com", "https://example.com/", False),
        ("*.example.com", "https://evilexample.com/", False),
        ("shop:8080", "http://shop:8080/", True),
        ("shop:8080", "http://shop/", False),
        ("shop:443", "https://shop/", True),
        ("*.example.com:8443", "https://a.example.com:8443/", True),
        ("*.example.com:8443", "https://a.example.com/", False),
        ("127.0.0.1", "http://127.0.0.1:5000/", True),
        ("127.0.0.1", "http://2130706433/", False),
        ("[::1]:80", "http://[::1]/", True),
        ("xn--bcher-kva.example", "https://bücher.example/", True),
    ],
)
def test_only_hosts_on_the_list_pass(pattern: str, url: str, answer: bool) -> None:
    target = read_url(url)
    assert HostList([pattern]).allows(target.host, target.port) is answer


def test_a_request_to_another_host_is_a_permanent_failure() -> None:
    with pytest.raises(Failure, match=r"evil\.example:443 is not in allow_hosts") as error:
        HostList(["good.example"]).check(read_url("https://evil.example/a?key=hunter2"))
    assert (error.value.kind, error.value.permanent) == ("http-forbidden", True)
    assert "hunter2" not in str(error.value)


def test_no_list_lets_any_host_pass_and_an_empty_one_none() -> None:
    HostList(None).check(read_url("http://any.example/"))
    with pytest.raises(Failure):
        HostList([]).check(read_url("http://any.example/"))


@pytest.mark.parametrize(
    "hosts", ["a.example", [""], ["https://a.example"], ["a.*"], ["*"], ["a b"], ["*.[::1]"], [5]]
)
def test_a_pattern_that_means_nothing_is_refused_at_once(hosts: Any) -> None:
    with pytest.raises(InvalidOptions, match="allow_hosts"):
        HttpHandler(HttpOptions(allow_hosts=hosts))


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("127.0.0.1", True),
        ("10.1.2.3", True),
        ("172.16.0.1", True),
        ("192.168.0.1", True),
        ("169.254.169.254", True),
        ("100.64.0.1", True),
        ("0.0.0.0", True),
        ("::1", True),
        ("fe80::1%eth0", True),
        ("fd00::1", True),
        ("::ffff:10.0.0.1", True),
        ("8.8.8.8", False),
        ("2606:4700::1111", False),
        ("::ffff:8.8.8.8", False),
        ("not an address", False),
    ],
)
def test_addresses_of_the_inside_are_known(address: str, private: bool) -> None:
    assert is_private(address) is private


class Fixed:
    """A resolver that always knows the same address."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.closed = False

    async def resolve(self, host: str, port: int, family: Any) -> list[Any]:
        return [{"host": self.address, "hostname": host, "port": port}]

    async def close(self) -> None:
        self.closed = True


def test_a_listed_name_that_leads_inside_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        inner = Fixed("10.0.0.5")
        resolver = WatchedResolver(inner, HostList(["*.example.com"]))
        for _ in range(3):
            found = await resolver.resolve("a.example.com", 443)
            assert found[0]["host"] == "10.0.0.5"
        await resolver.close()
        assert inner.closed

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert caplog.text.count("a.example.com is in allow_hosts and leads to the private") == 1


@pytest.mark.parametrize(
    ("host", "address"),
    [("a.example.com", "8.8.8.8"), ("proxy.inside", "10.0.0.5"), ("localhost", "127.0.0.1")],
)
def test_names_of_the_internet_not_listed_or_meant_so_give_no_warning(
    host: str, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    resolver = WatchedResolver(Fixed(address), HostList(["*.example.com", "localhost"]))
    asyncio.run(resolver.resolve(host, 443))
    assert caplog.records == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (HttpOptions(max_size=0, connections=0), "use numbers from 1"),
        (HttpOptions(user_agent="a\nb"), "control character"),
        (HttpOptions(proxy="socks5://p:1"), "proxy: use a URL"),
        (HttpOptions(proxy="http://p:x"), "proxy: use a URL"),
        (HttpOptions(verify="/nowhere/ca.pem"), "verify: cannot read certificates"),
        (HttpOptions(cert="/nowhere/me.pem"), "cert: cannot read '/nowhere/me.pem'"),
    ],
)
def test_options_that_cannot_work_fail_when_the_engine_is_made(
    options: HttpOptions, said: str
) -> None:
    with pytest.raises(InvalidOptions, match=said):
        HttpHandler(options)


def test_a_file_that_holds_no_certificate_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    with pytest.raises(InvalidOptions, match=r"ca\.pem"):
        HttpHandler(HttpOptions(verify=str(file)))


def test_a_proxy_s_password_is_not_shown() -> None:
    with pytest.raises(InvalidOptions) as error:
        HttpHandler(HttpOptions(proxy="ftp://me:hunter2@p"))
    assert "hunter2" not in str(error.value)
