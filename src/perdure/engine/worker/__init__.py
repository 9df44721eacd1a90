"""A worker: takes runs from the store, holds them, and gives them back."""
