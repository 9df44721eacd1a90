"""`perdure` as a process that ends with the one that began it, however that ends.

python -m perdure.cli.demo.tied worker order.json steps.py     # `perdure worker …`, tied
"""

from __future__ import annotations

from perdure.cli.demo.with_parent import tie
from perdure.cli.main import main

if __name__ == "__main__":
    tie()
    main(prog_name="perdure")
