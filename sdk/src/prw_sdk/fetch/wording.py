"""The words and marks by which pages that stand in another page's place are known. All of them are in lower case.

Marks of products that guard sites are taken only where they stand in the interstitial itself; what such products put
into every page they guard (scripts, cookies, sensors) proves nothing.
"""

from __future__ import annotations

import html
import re

PRODUCT = re.compile(
    rb'"@type"\s*:\s*(\[[^\]]{0,200})?"(https?://schema\.org/)?'
    rb'(product|productgroup|individualproduct|productmodel|offer|aggregateoffer|offercatalog|vehicle|book)"'
    rb"|item(type)\s*=\s*[\"']?https?://(www\.)?schema\.org/(product|offer|individualproduct|vehicle|book)"
    rb"|typeof\s*=\s*[\"']?(schema:|gr:)?(product|offering?)\b"
    rb"|property\s*=\s*[\"']?(og:type[\"']?\s+content\s*=\s*[\"']?(og:)?product|product:price|og:price)"
    rb"|content\s*=\s*[\"']?(og:)?product[\"']?\s+property\s*=\s*[\"']?og:type"
)
PLAIN_PRODUCT = (b'"@type":"product"', b'"@type": "product"', b'schema.org/product"')
TITLE = re.compile(rb"<title[^>]*>(.{0,400}?)</title", re.DOTALL)
HEADING = re.compile(rb"<h1[^>]*>(.{0,800}?)</h1", re.DOTALL)
PASSWORD = re.compile(rb"<input[^>]{0,400}type\s*=\s*[\"']?password")

HINTS = (
    b"captcha",
    b"chl",
    b"challenge",
    b"turnstile",
    b"incapsula",
    b"awswaf",
    b"ddos-guard",
    b"sucuri_",
    b"geetest",
    b"arkoselabs",
    b"cf-browser-",
    b"bm-verify",
    b"sec-if-cpt",
    b"frc-",
)
"""One of these stands in every page that holds one of the marks below."""
CHALLENGE = (
    b"_cf_chl_opt",
    b"cf-browser-verification",
    b"cf-chl-widget",
    b'id="challenge-form"',
    b"captcha-delivery.com/captcha",
    b"captcha-delivery.com/interstitial",
    b"captcha-delivery.com/c.js",
    b"captcha-delivery.com/i.js",
    b"px-captcha",
    b"sec-if-cpt-container",
    b"/_sec/cp_challenge/",
    b"bm-verify=",
    b"triggerinterstitialchallenge",
    b"incapsula incident id",
    b"request unsuccessful. incapsula",
    b"awswafintegration.getcaptcha",
    b"awswafintegration.checkforcerefresh",
    b"captcha.awswaf.com",
    b"/errors/validatecaptcha",
    b"/.well-known/ddos-guard/",
    b"sucuri_cloudproxy_js",
)
"""Marks of an interstitial; they count on a short page without product markup."""
CHALLENGE_TITLE = re.compile(
    r"(just a moment\.\.\.|pardon our interruption.*|robot check|ddos-guard|vercel security checkpoint"
    r"|attention required! \| cloudflare|checking your browser.{0,60})"
)
"""What such a page is called as a whole."""
REFUSAL = (
    *CHALLENGE,
    b"attention required! | cloudflare",
    b"captcha-delivery.com",
    b"perimeterx",
    b'"blockscript"',
    b"errors.edgesuite.net",
    b"awswaf.com",
    b"kpsdk",
    b"datadome",
    b"access to this page has been denied",
    b"pardon our interruption",
    b"unusual traffic from your computer network",
    b"/sorry/index",
)
"""Marks on an answer whose status refuses already."""
WIDGET = (
    b"g-recaptcha",
    b"recaptcha/api.js",
    b"h-captcha",
    b"hcaptcha.com/1/api.js",
    b"cf-turnstile",
    b"turnstile/v0/api",
    b"geetest",
    b"funcaptcha",
    b"arkoselabs",
    b"friendly-captcha",
    b"frc-captcha",
    b"smartcaptcha",
)
PROVE_HUMAN = re.compile(
    r"(you are|you're|are you) (a )?(human|not a (ro)?bot|a robot)|human verification|verify (that )?you"
    r"|robot check|security check|checking your browser|unusual traffic|automated (access|requests)"
    r"|prove (that )?you|complete the (captcha|security)|enter the characters you see"
    r"|(kein|sind sie ein) (ro)?bot|bist du ein (mensch|roboter)|sicherheits(überprüfung|abfrage)"
    r"|(pas|êtes-vous) un robot|vérifi(er|cation) que vous êtes|eres (humano|un robot)|no (soy|eres) un robot"
    r"|non (sono|sei) un robot|geen robot|não (sou|é) um robô"
)

_NOUN = (
    r"(page|product|item|article|listing|content|url|document|file|seite|artikel|produkt|inhalt|angebot"
    r"|produit|annonce|página|pagina|producto|artículo|contenido|prodotto|articolo|produto|sivu|sida|side|strona)"
)
MISSING = re.compile(
    rf"\b{_NOUN}\b.{{0,40}}\b(not found|no longer exists?|does not exist|doesn.t exist|can.?t be found"
    r"|could not be found|couldn.t be found|(wurde )?(leider )?nicht gefunden|existiert nicht|gibt es nicht"
    r"|introuvable|n.existe (pas|plus)|no encontrad[ao]|no existe|non trovat[ao]|niet gevonden|não encontrad[ao]"
    r"|ei löytynyt|hittades inte|ikke fundet|nie znaleziono)"
    rf"|\b(not found|nicht gefunden)\b.{{0,10}}\b(404|{_NOUN})\b"
    r"|^\W*((error|fehler|erreur|errore|http)\W{0,3})?404(\W{0,5}(error|fehler|not found|page|file|seite)[^|–-]{0,40})?"
    r"(\W*[|–-].{0,80})?$"
    r"|^\W*(page |seite )?(not found|nicht gefunden)\W*([|–-].{0,80})?$"
    r"|(can.?t|couldn.t|could not|cannot) find (the|that|this|your) (page|product|item)"
    r"|\b(diese|die) seite (wurde|konnte|existiert|ist)\b.{0,30}\bnicht\b"
)
LOGIN = re.compile(
    r"(.{0,40}[|–:·-]\s*)?(please )?(log ?in|sign ?in|log on|sign on|member login|customer login|login required"
    r"|account login|anmelden|anmeldung|einloggen|bitte (melden sie sich an|anmelden|einloggen)|kundenlogin"
    r"|connexion|se connecter|identifiez-vous|iniciar sesión|inicia sesión|acceder|accedi|inloggen|entrar"
    r"|logowanie|zaloguj się|logga in|log ind|kirjaudu( sisään)?)"
    r"((\s+(to|with|or|bei|mit|oder|in|zu|for)\b.{0,60})|\s*[|–:·-].{0,60})?\W*"
)
CONSENT = re.compile(
    r"before you continue|bevor (du|sie) fortfahren|avant d.accéder"
    r"|(wir|we) (brauchen|need|benötigen) (ihre|deine|your) (zustimmung|consent|einwilligung)"
    r"|^\W*(your )?(privacy|cookie) (consent|choices|wall|notice|settings)\W*$"
    r"|cookies? (are required|akzeptieren, um)|accept (all )?cookies to (continue|proceed|view|access)"
    r"|mit werbung (weiterlesen|lesen|nutzen)|(jetzt )?zustimmen und weiter"
    r"|^\W*(datenschutz(einstellungen)?|cookie-?einstellungen|zustimmung|einwilligung|consent)\W*$"
    r"|your (data|privacy), your (choice|experience)|yahoo (is part|fait partie|ist teil)"
    r"|(accepter|aceptar) (les |las )?cookies (pour|para) (continuer|continuar)"
)

CONSENT_PLACE = re.compile(
    r"^(consent|guce|cmp|privacywall|cookiewall)\.|^myprivacy\.|/(cookie-?wall|consent-?wall|privacy-?wall|collectconsent"
    r"|privacygate|zustimmung|consent)(/|\.[a-z]+$|$)"
)
LOGIN_HOST = re.compile(r"(login|signin|accounts?|auth|sso|idp|identity)\.")
LOGIN_PATH = re.compile(
    r"(^|/)(log-?in|sign-?in|log-?on|sign_in|log_in|user-?login|customer-?login|anmelden|anmeldung|einloggen"
    r"|connexion|iniciar-sesion|inloggen|accedi|sso|oauth2?|saml2?|openid|adfs|wp-login)(/|\.[a-z]{2,5}$|$)"
    r"|^/password/?$"
)
MISSING_PATH = re.compile(
    r"(^|/)(404|error-?404|404-?error|not-?found|page-?not-?found|notfound|nicht-?gefunden|no-longer-available)"
    r"(/|\.[a-z]{2,5}$|$)"
)
FRONT_PATH = re.compile(
    r"/?|/([a-z]{2}([-_][a-z]{2})?)/?|/([a-z]{2}/[a-z]{2})/?|/(index|home|default|start)(\.[a-z]{2,5}|/)?"
)
WAITING_HOST = re.compile(r"(^|\.)(queue-it\.net|captcha-delivery\.com)$")

_UNSEEN = re.compile(
    rb"<!--.*?-->|<(script|style|noscript|template|svg|head)\b.*?</\1\s*>", re.DOTALL
)
_TAG = re.compile(rb"<[^>]*>")
_SPACE = re.compile(r"\s+")


def plain(low: bytes) -> str:
    """The text of markup as a reader would see it, in lower case, with its white space folded."""
    seen = _TAG.sub(b" ", _UNSEEN.sub(b" ", low))
    text = html.unescape(seen.decode("utf-8", errors="replace"))
    return _SPACE.sub(" ", text).strip().lower()


def has_any(marks: tuple[bytes, ...], low: bytes) -> bool:
    """Whether one of the marks stands there."""
    return any(map(low.__contains__, marks))
