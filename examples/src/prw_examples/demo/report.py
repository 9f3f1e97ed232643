"""What the demo prints at the end: a table for people or one JSON object for scripts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import typer

from prw_base.tables import print_json, print_table
from prw_examples.demo.audit.model import Figures
from prw_examples.demo.children import prw
from prw_examples.demo.collector import SourceRun
from prw_examples.demo.layout import Layout
from prw_examples.demo.programs import Addresses

_MEANING = {
    "fetched": "answers from the sources, in this run",
    "kept": "captures in the collector's spool",
    "submitted": "captures that the resolver gave a receipt for",
    "accepted": "records that a rule decided",
    "in_review": "open cases that wait for a person",
    "public_items": "items that the product shows",
    "positions": "accepted changes in the stream",
    "gaps": "positions missing in the outbox or in the product's inbox",
    "duplicates": "listings mapped twice, captures kept twice",
    "merged_near_misses": "pairs that must differ and share an item",
    "split_same": "pairs that are the same and are public under two items, unasked",
    "untraceable_facts": "accepted facts that do not lead back to stored bytes",
    "missed_accepts": "records that a rule had to accept and did not",
}


def print_figures(figures: Figures, addresses: Addresses) -> None:
    """One line of JSON."""
    print_json(figures.as_json() | {"addresses": addresses.as_json()})


def print_report(
    sources: Sequence[SourceRun], figures: Figures, addresses: Addresses, layout: Layout
) -> None:
    """The sources, the figures and what they mean, where to look, and what to do next."""
    columns = ("source", "planned", "fetched", "kept", "unchanged", "ended")
    rows = [tuple(getattr(one, name) for name in columns) for one in sources]
    print_table("Collected in this run", columns, rows)
    print_table("What happened", ("figure", "number", "meaning"), _figure_rows(figures))
    print_table("Where it serves", ("what", "address"), _address_rows(addresses))
    typer.echo(f"Logs: {_short(layout.logs)}")


def _figure_rows(figures: Figures) -> list[tuple[object, ...]]:
    values = figures.as_json()
    rows: list[tuple[object, ...]] = [
        (name.replace("_", " "), values[name], meaning) for name, meaning in _MEANING.items()
    ]
    same, different = figures.pairs.same, figures.pairs.different
    tested = f"{same} + {different}"
    rows.append(("pairs tested", tested, "pairs of the truth file decided on: same + different"))
    return rows


def _address_rows(addresses: Addresses) -> list[tuple[str, str]]:
    held = addresses.as_json()
    return [
        ("catalogue page", held["catalogue_page"]),
        ("catalogue over HTTP", held["catalogue_http"]),
        ("catalogue over gRPC (prw.catalog.v1.CatalogService)", held["catalogue_grpc"]),
        ("resolver over gRPC (collectors, reviewers, followers)", held["resolver_grpc"]),
        ("example street (three host names on one port)", held["street"]),
    ]


def print_next(figures: Figures, addresses: Addresses, layout: Layout) -> None:
    """What a user does next while everything serves, ready to be pasted into another terminal."""
    token, program = _short(layout.token("operator")), _short(Path(prw()[0]))
    review = f"{program} resolver review list --address {addresses.resolver_grpc}"
    given = {
        "CATALOGUE": addresses.catalogue,
        "RESOLVER": addresses.resolver_grpc,
        "OPERATOR_TOKEN": token,
    }
    assigned = " ".join(f"{name}={shlex.quote(value)}" for name, value in given.items())
    typer.echo(f"\n{figures.in_review} cases wait for a person. Look at them, in another terminal:")
    typer.echo(f"  {review} --token-file {shlex.quote(token)}")
    typer.echo(f"For the commands of the README:\n  export {assigned}")
    typer.echo("Press Ctrl-C to stop.")


def _short(path: Path) -> str:
    """The path from the working folder where it lies in there."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
