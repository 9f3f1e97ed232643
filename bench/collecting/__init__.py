"""The sides of ``bench.collect`` and the site that they all crawl, each a program of its own."""
