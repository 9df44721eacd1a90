"""The graph door: workflows written as documents."""

from perdure.graph.definition import Graph
from perdure.graph.lint import lint
from perdure.graph.schema import json_schema

__all__ = ["Graph", "json_schema", "lint"]
