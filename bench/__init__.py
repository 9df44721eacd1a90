"""Measurements: workloads beside their ceilings, both taken in the same run.

`python -m bench` prints ratios. Absolute numbers say more about the machine than about perdure.
"""
