"""What a document needs of the environment: its secrets, and the extra that sends requests.

Checked before a run begins. A variable that was forgotten is mended at once, and a run that has
failed for want of it is not.
"""

from __future__ import annotations

import re
from typing import Final

from perdure.cli.exits import usage
from perdure.engine.attempts.secrets import Secrets, variable_of
from perdure.engine.handlers.http import HttpHandler
from perdure.expr.errors import ExprError
from perdure.expr.template_text import compile_text
from perdure.graph.definition import Graph

_READ: Final = re.compile(r"""\bsecrets(?:\.(\w+)|\[\s*["']([^"']+)["']\s*\])""")


def check_http(graph: Graph, document: str) -> None:
    """Raise Trouble when the document sends requests, and nothing is installed that could."""
    if HttpHandler.available():
        return
    for node in graph.plan.nodes.values():
        if node.type == "HTTP":
            raise usage(
                f"{document}: node {node.id} sends a request, which needs the extra [http]: "
                "pip install 'perdure[http]'"
            )


def check_secrets(graph: Graph, document: str) -> None:
    """Raise Trouble when templates read secrets whose variables are not set."""
    secrets = Secrets.from_environment()
    missing = {
        name: node.id
        for node in graph.plan.nodes.values()
        for text in node.spec.secrets.values()
        for name in _missing(text, secrets)
    }
    if missing:
        reads = "; ".join(f"node {node} reads secrets.{name}" for name, node in missing.items())
        variables = ", ".join(map(variable_of, missing))
        raise usage(f"{document}: {reads}: set {variables} in the environment")


def _missing(text: str, secrets: Secrets) -> list[str]:
    """The secrets without which this text cannot be filled in. One that only may be read, as by
    `has()`, is none of them."""
    try:
        compile_text(text).render({"secrets": secrets})
    except ExprError:
        names = [plain or quoted for plain, quoted in _READ.findall(text)]
        return [name for name in names if name not in secrets]
    return []
