"""Serves another application exactly as `normata serve` serves Normata: same server, same configuration.

python -m benchmarks.speed.stand_in benchmarks.speed.bare:create_app --port 8001
"""

from __future__ import annotations

import argparse

from normata.serving import run
from normata.settings import Settings


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("application", help="module:factory")
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    run(Settings(port=options.port, workers=1), options.application)


if __name__ == "__main__":
    main()
