"""What a source states, as leaves, and the claims that an inventory makes of them.

An author's `read` is mostly this: find the node that is the record (`jsonld`, `json_node`), `take` its leaves under the
adapter's inventory, and make a record of what was taken. What no declaration covers is left over and named, so that a
field that the source renamed, added or re-typed shows in the run that meets it first (rule 14).

Texts are exactly what the source wrote: a price of ``12.90`` stays ``12.90``.
"""

from prw_sdk.take.documents import json_leaves, json_node, jsonld
from prw_sdk.take.leaves import SELLER, Leaf, Node, Taken, stated, take
from prw_sdk.take.markup import labelled, page_leaves
from prw_sdk.take.text import Number, is_template, parsed

__all__ = [
    "SELLER",
    "Leaf",
    "Node",
    "Number",
    "Taken",
    "is_template",
    "json_leaves",
    "json_node",
    "jsonld",
    "labelled",
    "page_leaves",
    "parsed",
    "stated",
    "take",
]
