"""Scrapy's side. ``python -m bench.collecting.by_scrapy ORIGIN PAGES AT_ONCE FOLDER|-``.

With a folder every response goes into its HTTP cache on disk (its own file storage), with ``-`` nothing is kept.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response, TextResponse

from bench.collecting.pages import paths, product
from bench.collecting.result import tell


class Shop(Spider):
    """The site's products."""

    name = "shop"
    read: list[int] = [0]  # noqa: RUF012 - counted over the one crawl

    async def start(self) -> AsyncIterator[Any]:
        """Every page."""
        for path in paths(int(sys.argv[2])):
            yield Request(sys.argv[1] + path, dont_filter=True)

    def parse(self, response: Response, **_: object) -> Iterator[dict[str, Any]]:
        """One product."""
        if isinstance(response, TextResponse):
            yield product(response.selector)
        self.read[0] += 1


def settings(at_once: int, folder: str) -> dict[str, object]:
    """Politeness off, and nothing that only costs time."""
    return {
        "CONCURRENT_REQUESTS": at_once,
        "CONCURRENT_REQUESTS_PER_DOMAIN": at_once,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "AUTOTHROTTLE_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "COOKIES_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "HTTPCACHE_ENABLED": folder != "-",
        "HTTPCACHE_DIR": folder,
        "HTTPCACHE_STORAGE": "scrapy.extensions.httpcache.FilesystemCacheStorage",
    }


def main() -> None:
    """One crawl, and what it came to."""
    pages, at_once, folder = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    process = CrawlerProcess(settings(at_once, folder))
    process.crawl(Shop)
    start = time.monotonic()
    process.start()
    seconds = time.monotonic() - start
    if Shop.read[0] != pages:
        raise SystemExit(f"Scrapy read {Shop.read[0]} pages of {pages}")
    tell(pages, seconds)


if __name__ == "__main__":
    main()
