"""Crawlee's side, in its lightest form: Parsel crawler, httpx, storage in memory, no retries.

``python -m bench.collecting.by_crawlee ORIGIN PAGES AT_ONCE -``
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.http_clients import HttpxHttpClient
from crawlee.storage_clients import MemoryStorageClient

from bench.collecting.pages import paths, product
from bench.collecting.result import tell


async def crawl(origin: str, pages: int, at_once: int) -> int:
    """Every page; how many were read."""
    crawler = ParselCrawler(
        http_client=HttpxHttpClient(http2=False),
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=at_once, desired_concurrency=at_once, max_concurrency=at_once
        ),
        max_request_retries=0,
        configure_logging=False,
    )
    found = 0

    async def read(context: ParselCrawlingContext) -> None:
        nonlocal found
        product(context.selector)
        found += 1

    crawler.router.default_handler(read)
    await crawler.run([origin + path for path in paths(pages)])
    return found


def main() -> None:
    """One crawl, and what it came to."""
    logging.disable(logging.CRITICAL)
    origin, pages, at_once = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    start = time.monotonic()
    found = asyncio.run(crawl(origin, pages, at_once))
    seconds = time.monotonic() - start
    if found != pages:
        raise SystemExit(f"Crawlee read {found} pages of {pages}")
    tell(pages, seconds)


if __name__ == "__main__":
    main()
