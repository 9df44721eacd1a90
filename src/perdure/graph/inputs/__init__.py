"""What a start may give: the `input` schema of a document, and the check against it."""
