"""One product's JSON-LD as shops write it: each a kind that somebody reported as breaking their reader."""

from __future__ import annotations

PRODUCT = (
    '{"@type": "Product", "name": "Desk lamp", "sku": "L-1", '
    '"offers": {"@type": "Offer", "price": "9.90", "priceCurrency": "EUR"}}'
)
OFFER = '{"@type": "Offer", "price": "9.90", "priceCurrency": "EUR"}'
_SITE = '{"@type": "WebSite", "url": "https://shop.example"}'


def script(body: str, kind: str = "application/ld+json") -> str:
    """A script element with that body."""
    return f'<script type="{kind}">{body}</script>'


def with_offers(offers: str) -> str:
    """The product with other offers."""
    return PRODUCT.replace(OFFER, offers)


READ: dict[str, str] = {
    "CDATA behind a line comment, its end an entity": script(f"// <![CDATA[\n{PRODUCT}\n// ]]&gt;"),
    "bare CDATA": script(f"<![CDATA[{PRODUCT}]]>"),
    "CDATA within block comments": script(f"/*<![CDATA[*/{PRODUCT}/*]]>*/"),
    "an HTML comment around": script(f"<!--\n{PRODUCT}\n-->"),
    "an HTML comment, its end commented": script(f"<!--\n{PRODUCT}\n//-->"),
    "trailing commas": script(PRODUCT.replace('"EUR"}}', '"EUR",},\n}')),
    "a trailing comma before a no-break space": script(
        PRODUCT.replace('"EUR"}}', '"EUR",\u00a0}}')
    ),
    "comments": script(f"/* shop */ {PRODUCT} // end"),
    "a semicolon behind": script(f"{PRODUCT};"),
    "a byte order mark in the script": script(f"\ufeff{PRODUCT}"),
    "a byte order mark of the page": f"\ufeff<html>{script(PRODUCT)}",
    "a no-break space before": script(f"\u00a0{PRODUCT}"),
    "no-break spaces between": script(
        PRODUCT.replace(" ", "\u00a0").replace("Desk\u00a0", "Desk ")
    ),
    "a zero-width space before": script(f"\u200b\n{PRODUCT}"),
    "quotes as entities": script(PRODUCT.replace('"', "&quot;")),
    "quotes as numbered entities": script(f"\n[{PRODUCT.replace(chr(34), '&#34;')}]"),
    "a raw line break in a text": script(PRODUCT.replace("Desk lamp", "Desk\r\nlamp")),
    "a raw tab in a text": script(PRODUCT.replace("Desk lamp", "Desk\tlamp")),
    "escapes that JSON has not": script(PRODUCT.replace("Desk lamp", "D\\esk lamp")),
    "escaped slashes": script(PRODUCT.replace('"@type"', '"image": "\\/a.png", "@type"', 1)),
    "several scripts": script(_SITE) + script(PRODUCT) + script('{"@type": "BreadcrumbList"}'),
    "a broken script before": script('{"@type": "Product", ') + script(PRODUCT),
    "an empty script before": script("") + script(" ") + script(PRODUCT),
    "an unfilled template before": script('{"@type": "Product", "name": "${name}"}')
    + script(PRODUCT),
    "a graph": script(f'{{"@context": "https://schema.org", "@graph": [{_SITE}, {PRODUCT}]}}'),
    "a graph of one object": script(f'{{"@graph": {PRODUCT}}}'),
    "a list at the top": script(f"[{_SITE}, {PRODUCT}]"),
    "a list in a list at the top": script(f"[[{PRODUCT}]]"),
    "several types": script(PRODUCT.replace('"Product"', '["Thing", "Product"]')),
    "types by address": script(PRODUCT.replace('"Product"', '"http://schema.org/Product"')),
    "offers in a list": script(with_offers(f"[{OFFER}]")),
    "offers in a list in a list": script(with_offers(f"[[{OFFER}]]")),
    "a price as a number": script(PRODUCT.replace('"9.90"', "9.90")),
    "a price in a list": script(PRODUCT.replace('"9.90"', '["9.90"]')),
    "a price as a typed value": script(PRODUCT.replace('"9.90"', '{"@value": "9.90"}')),
    "a member said twice": script(PRODUCT.replace('"sku"', '"sku": "L-0", "sku"')),
    "a wider type of script": script(PRODUCT, "Application/LD+JSON; charset=utf-8"),
    "within noscript": f"<noscript>{script(PRODUCT)}</noscript>",
}
"""Pages of which the product's name, number and price are read."""

BROKEN: dict[str, str] = {
    "cut off": script(PRODUCT[:-8]),
    "single quotes": script(PRODUCT.replace('"', "'")),
    "names without quotes": script('{@type: "Product", name: "Desk lamp"}'),
    "typographic quotes": script(PRODUCT.replace('"', "\u201d")),
    "a quote within a text": script(PRODUCT.replace("Desk lamp", '3.5" lamp')),
    "a missing comma": script(PRODUCT.replace('"Desk lamp",', '"Desk lamp"')),
    "a template without quotes": script(PRODUCT.replace('"9.90"', "{{ price }}")),
    "a word of JavaScript": script(PRODUCT.replace('"9.90"', "undefined")),
    "an assignment": script(f"var product = {PRODUCT};"),
    "the end of a script within a text": script(PRODUCT.replace("Desk lamp", "a</script>b")),
    "deeper than any reader goes": script("[" * 100_000),
}
"""Pages whose script cannot be read safely: nothing is guessed."""

TEMPLATES = (
    "${product.price}",
    "$${product.price.currency}",
    "{{ product.price }}",
    "{{{price}}}",
    "{% if price %}",
    "<%= price %>",
    "%%PRICE%%",
    "%PRICE%",
)
"""What the shop's software should have filled in."""

NO_TEMPLATES = ("100% cotton", "5% off, 10% off", "Set {A} {B}", "<b>9.90</b>", "$9.90", "50%")
"""What only looks a little like that."""
