"""The SDK as a library: ``python -m prw_examples.local_collector SITE FOLDER [PRIVATE HOST…]``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from prw_sdk.adapter import Source
from prw_sdk.collect import RunLimits, SourceJob, collect
from prw_sdk.collect.reading import read
from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.http import NetConfig
from prw_sdk.fetch.polite import user_agent
from prw_sdk.plugins import load
from prw_sdk.spool.folder import Spool

if __name__ == "__main__":
    site, folder, *private = sys.argv[1:]
    adapter = load().find("schemaorg")()
    source = Source("src_local", adapter.settings.model_validate({"site": site}))
    net = NetConfig(user_agent("you@example.org"), AddressRules(frozenset(private)))
    spool = Spool(Path(folder))
    asyncio.run(collect([SourceJob("local", source, adapter, net)], spool, RunLimits()))
    for kept in spool.ledger.captures():
        for record in read(adapter, spool.capture(kept)).records:
            told = {claim.attribute: claim.value_as_stated for claim in record.claims}
            sys.stdout.write(
                f"{record.listing_key}\t{told.get('core:title')}\t{told.get('offer:price')}\n"
            )
