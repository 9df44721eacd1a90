"""What a start may give: the `input` schema of a document, and the check against it."""

from perdure.graph.inputs.check import InputCheck, input_check

__all__ = ["InputCheck", "input_check"]
