"""HttpOptions: how an engine's HTTP nodes reach the network. Wrong options fail at start."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from perdure.codec.values import PAYLOAD_LIMIT
from perdure.model.errors import InvalidOptions

#: Leaves room in the recorded output for status and headers.
MAX_SIZE: Final = PAYLOAD_LIMIT - 64 * 1024


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for every HTTP node of an engine.

    verify: True = the system's certificate authorities, a path = a file of them, False = no check
    (for tests only). cert: the client's certificate, a file or (certificate, key). proxy: URL of
    an HTTP proxy. allow_hosts: `api.example.com`, `*.example.com`, `host:8080`; None = any host.
    max_size: of a body unpacked, in bytes. connections: open at a time, further requests wait.
    """

    verify: bool | str = True
    cert: str | tuple[str, str] | None = None
    proxy: str | None = None
    allow_hosts: Sequence[str] | None = None
    max_size: int = MAX_SIZE
    user_agent: str = "perdure"
    connections: int = 100


def check_options(options: HttpOptions) -> None:
    """Raises InvalidOptions with everything that no request could be sent with."""
    problems = []
    if options.max_size < 1 or options.connections < 1:
        problems.append("max_size and connections: use numbers from 1")
    if not options.user_agent.isprintable():
        problems.append("user_agent holds a control character")
    if options.proxy is not None and not _is_proxy(options.proxy):
        problems.append("proxy: use a URL like http://proxy.example:3128")  # it may hold a password
    if problems:
        raise InvalidOptions(f"http options: {'; '.join(problems)}", problems)


def _is_proxy(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def tls(options: HttpOptions) -> ssl.SSLContext | bool:
    """What the client checks certificates with. Raises InvalidOptions naming the bad file."""
    if options.cert is None and isinstance(options.verify, bool):
        return options.verify
    path = options.verify if isinstance(options.verify, str) else None
    try:
        context = ssl.create_default_context(cafile=path)
    except OSError as error:
        raise InvalidOptions(f"verify: cannot read certificates from {path!r}: {error}") from None
    if options.verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if options.cert is not None:
        files = (options.cert,) if isinstance(options.cert, str) else tuple(options.cert)
        try:
            context.load_cert_chain(*files)
        except OSError as error:
            raise InvalidOptions(f"cert: cannot read {files[0]!r}: {error}") from None
    return context
