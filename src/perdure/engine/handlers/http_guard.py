"""Which hosts HTTP nodes may reach, and a warning when a name leads into the private network.

A request to a host that is not on the list is refused before its name is even looked up. Names
are resolved once: the addresses that were looked at are the ones connected to.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import socket
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

import msgspec

from perdure.engine.handlers.http_url import Target, refused
from perdure.model.errors import InvalidOptions

_log = logging.getLogger("perdure.engine.http")
_PATTERN: Final = re.compile(
    r"(?P<any>\*\.)?(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<host>[a-z0-9_.-]+))(?::(?P<port>\d{1,5}))?"
)


class Pattern(msgspec.Struct, frozen=True):
    """A line of the list: `host`, `*.host` (what is below it, not itself), either with a port."""

    host: str
    below: bool = False
    port: int | None = None

    def allows(self, host: str, port: int) -> bool:
        """Whether this host and port are meant."""
        if self.port is not None and self.port != port:
            return False
        return host.endswith(f".{self.host}") if self.below else host == self.host


class HostList:
    """The list of hosts allowed; None = no list, any host. Raises InvalidOptions."""

    def __init__(self, hosts: Iterable[str] | None) -> None:
        if isinstance(hosts, str):
            raise InvalidOptions(f"allow_hosts {hosts!r}: give a list of hosts")
        self._patterns = None if hosts is None else tuple(map(read_pattern, hosts))

    @property
    def is_set(self) -> bool:
        """Whether there is a list."""
        return self._patterns is not None

    def allows(self, host: str, port: int) -> bool:
        """Whether a request may go there."""
        return self._patterns is None or any(p.allows(host, port) for p in self._patterns)

    def check(self, target: Target) -> None:
        """Raises a permanent Failure, kind http-forbidden."""
        if not self.allows(target.host, target.port):
            raise refused(
                "http-forbidden",
                f"host {target.host}:{target.port} is not in allow_hosts: nothing was sent",
            )


def read_pattern(text: Any) -> Pattern:
    """`api.example.com`, `*.example.com`, `host:8080`, `[::1]:8080`. Raises InvalidOptions."""
    found = _PATTERN.fullmatch(text.lower().rstrip(".")) if isinstance(text, str) else None
    if found is None or (found["any"] and found["six"]):
        raise InvalidOptions(
            f"allow_hosts {text!r}: use a host, *.domain or either with :port "
            "(letters beyond ASCII in their xn-- form)"
        )
    port = int(found["port"]) if found["port"] else None
    return Pattern(found["six"] or found["host"], bool(found["any"]), port)


class Resolver(Protocol):
    """What the HTTP client resolves names with."""

    async def resolve(self, host: str, port: int, family: Any) -> list[Any]: ...
    async def close(self) -> None: ...


class WatchedResolver:
    """Resolves by another resolver and warns once per name that is listed and leads inside."""

    def __init__(self, inner: Resolver, hosts: HostList) -> None:
        self._inner = inner
        self._hosts = hosts
        self._warned: set[str] = set()
        self.on_private: Callable[[str, str], None] = warn

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[Any]:
        """Addresses of the host, as the client's resolvers give them."""
        found = await self._inner.resolve(host, port, family)
        if host not in self._warned and host != "localhost" and self._hosts.allows(host, port):
            inside = next((a["host"] for a in found if is_private(a["host"])), None)
            if inside is not None:
                self._warned.add(host)
                self.on_private(host, inside)
        return found

    async def close(self) -> None:
        """Close the inner resolver."""
        await self._inner.close()


def warn(host: str, address: str) -> None:
    """The warning; a list is set to keep requests out of where this one goes."""
    _log.warning(
        "host %s is in allow_hosts and leads to the private address %s: "
        "if that is not meant, take it from the list",
        host,
        address,
    )


def is_private(address: str) -> bool:
    """Whether an address is private, loopback, link-local or otherwise not of the internet."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return not (mapped or parsed).is_global
