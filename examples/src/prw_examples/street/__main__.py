"""Serve the example street: `python -m prw_examples.street --port 8080`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from prw_examples.street.catalogue import load_catalogue
from prw_examples.street.server import listen, serve
from prw_examples.street.sources import collector_toml
from prw_examples.street.truth import derive_truth, dump


def main() -> None:
    """Print the port and serve until SIGINT or SIGTERM, or print the truth file."""
    parser = argparse.ArgumentParser(prog="prw_examples.street", description="The example street.")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--truth", action="store_true", help="print the truth file and stop")
    parser.add_argument(
        "--sources", type=Path, metavar="FILE", help="write a collector's settings for this street"
    )
    arguments = parser.parse_args()
    if arguments.truth:
        sys.stdout.write(dump(derive_truth(load_catalogue())))
        return
    listener = listen(arguments.port)
    port = listener.getsockname()[1]
    if arguments.sources is not None:
        arguments.sources.write_text(collector_toml(port), "utf-8")
    hosts = ", ".join(shop.host for shop in load_catalogue().shops)
    sys.stdout.write(f"street: {hosts} on 127.0.0.1:{port}\n")
    sys.stdout.flush()
    serve(listener)


if __name__ == "__main__":
    main()
