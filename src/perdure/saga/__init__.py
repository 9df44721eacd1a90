"""The saga door: steps declared one after the other, each with what undoes it."""
