"""Halden Parts: a shop whose pages are empty until their scripts have asked for what they show."""

from __future__ import annotations

import json

from prw_sdk.testing.server import Site, answer

HOST = "halden.example"
PRODUCTS = {
    "p44-2tb": {
        "title": "Solidigm P44 Pro 2TB NVMe SSD",
        "brand": "Solidigm",
        "price": "129,00 €",
        "stock": "In stock",
        "rows": {
            "Part number": "SSDPFKKW020X7X1",
            "EAN": "0810083420189",
            "Capacity": "2 TB",
            "Interface": "PCIe 4.0 x4, NVMe",
            "Heatsink": "No",
            "Condition": "New",
            "Rating": "4.8 of 5",
        },
    },
    "990-1tb": {
        "title": "Samsung 990 PRO 1TB with Heatsink",
        "brand": "Samsung",
        "price": "99,00 €",
        "stock": "Out of stock",
        "rows": {"Part number": "MZ-V9P1T0CW", "Capacity": "1 TB", "Heatsink": "Yes"},
    },
    "mx500": {
        "title": "Crucial MX500 1TB SATA SSD",
        "brand": "Crucial",
        "price": "64,50 €",
        "stock": "In stock",
        "rows": {"Part number": "CT1000MX500SSD1", "Capacity": "1 TB", "Condition": "Refurbished"},
    },
}
POLICIES = {
    "/shipping": ["Orders of 50 € and more are sent free of charge.", "Within Germany: 4.90 €."],
    "/returns": ["You can send an article back within 30 days."],
    "/warranty": ["Two years by law; five years by the maker where the article's page says so."],
}
_HEAD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Halden Parts</title>
<meta property="og:site_name" content="Halden Parts"><meta property="og:image" content="http://halden.example/drives.jpg">
<meta name="description" content="Drives for every slot.">
<script src="https://www.googletagmanager.com/gtm.js"></script></head><body>"""
_FOOT = """<footer><a href="/shipping">Shipping</a> <a href="/returns">Returns</a> <a href="/warranty">Warranty</a>
<a href="https://elsewhere.example/shipping">Our carrier</a></footer></body></html>"""
_PRODUCT = """<main id="app"><p class="loading">One moment …</p></main><script>
const app = document.getElementById('app');
const asked = fetch('/api/products/' + location.pathname.split('/').pop());
asked.then(found => found.ok ? found.json() : null).then(item => {
  if (!item) { app.innerHTML = '<h1 class="not-found">We do not have that</h1>'; return; }
  const rows = Object.entries(item.rows).map(([label, value]) => `<tr><th>${label}:</th><td>${value}</td></tr>`);
  app.innerHTML = `<h1>${item.title}</h1><p class="brand">${item.brand}</p><p class="price">${item.price}</p>
    <p class="stock">${item.stock}</p><table>${rows.join('')}</table>`;
});
</script>"""
_LIST = """<main id="app"></main><script>
fetch('/api/list?page=PAGE').then(found => found.json()).then(list => {
  const links = list.products.map(one => `<li><a class="product" href="/p/${one}#top">${one}</a></li>`);
  const next = list.next ? `<a rel="next" href="${list.next}">more</a>` : '';
  document.getElementById('app').innerHTML = `<ul>${links.join('')}</ul>${next}`;
});
</script>"""

SETTINGS = """
wait_for = "h1"
wait_for_list = "a.product"
not_found = "h1.not-found"
selectors = { brand = ".brand", availability = ".stock" }
[source.settings.exclusions]
"data.*" = "what the page shows, once more, as its scripts were given it"
"""


def page(body: str) -> bytes:
    """A page of the shop."""
    return answer(f"{_HEAD}{body}{_FOOT}".encode())


def build(site: Site) -> None:
    """Serve the shop: two pages of a list, three products, one that is listed and is none, three policies."""
    lists = {
        "1": (["p44-2tb", "990-1tb"], "/drives?page=2"),
        "2": (["990-1tb", "mx500", "gone"], None),
    }
    for number, (names, onward) in lists.items():
        site.serve(f"/drives?page={number}", page(_LIST.replace("PAGE", number)))
        _serve_json(site, f"/api/list?page={number}", {"products": names, "next": onward})
    for name, product in PRODUCTS.items():
        site.serve(f"/p/{name}", page(_PRODUCT))
        _serve_json(site, f"/api/products/{name}", product)
    site.serve("/p/gone", page(_PRODUCT))
    _serve_json(site, "/api/products/gone", None)
    for path, lines in POLICIES.items():
        site.serve(path, page(f"<main>{''.join(f'<p>{line}</p>' for line in lines)}</main>"))


def _serve_json(site: Site, path: str, document: object) -> None:
    body = json.dumps(document, ensure_ascii=False).encode()
    site.serve(path, answer(body, content_type="application/json"))


def source(site: Site) -> str:
    """The collector's settings for it."""
    return f"""
[[source]]
id = "src_halden"
adapter = "rendered-shop"
locale = "en_GB"
currency = "EUR"
allow_private = ["{HOST}:80"]
resolve = {{ "{HOST}:80" = "127.0.0.1:{site.port}" }}
[source.settings]
lists = ["http://{HOST}/drives?page=1"]
{SETTINGS}"""
