"""Drawing graphs: Mermaid text, and SVG by a small layered layout of our own.

A drawing shows a document alone, or together with how a run of it went. It is the same text for
the same input on every machine, needs nothing to be installed, and holds no text that is not
escaped. From a document to a drawing: sketch (what is to be seen) → layers → crossings →
columns → layout (where it is) → svg; Mermaid lays a sketch out itself.
"""

from perdure.graph.draw.mermaid import mermaid
from perdure.graph.draw.sketch import Sketch, sketch_of
from perdure.graph.draw.svg import svg

__all__ = ["Sketch", "mermaid", "sketch_of", "svg"]
