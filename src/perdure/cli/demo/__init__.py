"""`perdure demo`: a workflow is killed in the middle, goes on, and accounts for what happened."""
