"""What the storefronts say in their own language, and how they write an amount of money."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from prw_examples.street.model import Condition, Fact, Listing, Shop

LABELS: Mapping[str, Mapping[Fact, str]] = {
    "en": {
        Fact.CAPACITY: "Capacity",
        Fact.HEATSINK: "Heatsink",
        Fact.PACK: "Pack quantity",
        Fact.MPN: "Part number",
        Fact.CONDITION: "Condition",
    },
    "de": {
        Fact.CAPACITY: "Kapazität",
        Fact.HEATSINK: "Kühlkörper",
        Fact.PACK: "Packungsmenge",
        Fact.MPN: "Herstellernummer",
        Fact.CONDITION: "Zustand",
    },
}
YES_NO: Mapping[str, tuple[str, str]] = {"en": ("No", "Yes"), "de": ("nein", "ja")}
STOCK: Mapping[str, tuple[str, str]] = {
    "en": ("Out of stock", "In stock"),
    "de": ("Nicht auf Lager", "Auf Lager"),
}
CONDITIONS: Mapping[str, Mapping[Condition, str]] = {
    "en": {Condition.NEW: "New", Condition.REFURBISHED: "Refurbished", Condition.USED: "Used"},
    "de": {
        Condition.NEW: "Neu",
        Condition.REFURBISHED: "Generalüberholt",
        Condition.USED: "Gebraucht",
    },
}
SELLER: Mapping[str, str] = {"en": "Sold by", "de": "Verkauf durch"}
ADDITIONAL = (Fact.CAPACITY, Fact.HEATSINK, Fact.PACK)


def money(amount: Decimal, shop: Shop) -> str:
    """An amount for people: `$1,249.00` in US English, `1.299,00 €` in German."""
    plain = f"{amount:,.2f}"
    if shop.language == "de":
        return plain.translate(str.maketrans(",.", ".,")) + " €"
    return f"${plain}"


def value(listing: Listing, fact: Fact, language: str) -> str:
    """One of the `ADDITIONAL` facts as its page writes it."""
    if fact is Fact.HEATSINK:
        return YES_NO[language][bool(listing.product.heatsink)]
    return str(listing.product.pack) if fact is Fact.PACK else listing.capacity


def additional(listing: Listing, language: str) -> list[tuple[str, str]]:
    """Label and value of what the page states beyond schema.org's own properties."""
    facts = (fact for fact in ADDITIONAL if listing.stated(fact))
    return [(LABELS[language][fact], value(listing, fact, language)) for fact in facts]
