"""The few questions that are asked of a parsed document."""

from __future__ import annotations

from lxml import etree


def parse(text: str) -> etree._Element | None:
    """A page as browsers would mend it; None where there is nothing in it."""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    raw = text.lstrip("\ufeff \t\r\n").encode("utf-8", errors="replace")
    try:
        return etree.fromstring(raw, parser)
    except etree.XMLSyntaxError:
        return None


def elements(within: etree._Element, path: str, **variables: str) -> list[etree._Element]:
    """The elements that an XPath selects."""
    found = etree.XPath(path)(within, **variables)
    return (
        [one for one in found if isinstance(one, etree._Element)] if isinstance(found, list) else []
    )


def text(element: etree._Element) -> str:
    """All the text in an element, as it stands."""
    return str(element.xpath("string()"))
