"""What a page that is open in a browser can reach: nothing but what the network's guard lets through."""

from __future__ import annotations

import pytest

from prw_sdk.fetch.browser import Browser, BrowserConfig
from prw_sdk.fetch.browser_rules import Asked, VisitLimits, refusal, to_page, to_send
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.polite import HostGates
from prw_sdk.testing.server import Site, answer, redirect
from tests.browser.pages import MANNERS, by_role, html, json, listening, net_config, script

PAGE = "https://www.shop.example/p/1"


@pytest.mark.parametrize(
    ("method", "url", "kind"),
    [
        ("GET", "https://www.shop.example/a.js", "script"),
        ("GET", "https://api.shop.example/offers", "fetch"),
        ("GET", "https://shop.example/frame", "document"),
        ("GET", "https://cdn.other.example/a.css", "stylesheet"),
        ("GET", "https://cdn.other.example/a.woff2", "font"),
        ("GET", "https://data.partner.example/stock", "xhr"),
    ],
)
def test_a_page_gets_what_it_is_made_of(method: str, url: str, kind: str) -> None:
    """Anything of its own site and of hosts that are allowed; what it is shown with of others."""
    assert refusal(Asked(method, url, kind), PAGE, frozenset({"partner.example"})) is None


@pytest.mark.parametrize(
    ("method", "url", "kind"),
    [
        ("POST", "https://www.shop.example/cart", "fetch"),
        ("HEAD", "https://www.shop.example/a", "fetch"),
        ("GET", "https://other.example/stock", "xhr"),
        ("GET", "https://other.example/frame", "document"),
        ("GET", "https://notshop.example/offers", "fetch"),
        ("GET", "https://www.googletagmanager.com/gtm.js", "script"),
        ("GET", "https://www.shop.example/film", "media"),
        ("GET", "https://www.shop.example/beacon", "ping"),
        ("GET", "https://www.shop.example/next", "other"),
        ("GET", "wss://www.shop.example/live", "websocket"),
        ("GET", "file:///etc/passwd", "document"),
        ("GET", "ftp://www.shop.example/x", "document"),
    ],
)
def test_a_page_gets_nothing_else(method: str, url: str, kind: str) -> None:
    """Each refusal has its reason."""
    assert refusal(Asked(method, url, kind), PAGE, frozenset())


def test_only_what_is_the_page_s_own_goes_over_the_wire() -> None:
    """Our client says by itself who asks and which encodings it reads; hints stay here."""
    sent = to_send(
        {"Accept": "*/*", "Cookie": "a=1", "Sec-CH-UA": "x", "User-Agent": "Mozilla", "Host": "h"}
    )
    assert sent == {"accept": "*/*", "cookie": "a=1"}


def test_a_page_sees_headers_of_decoded_bytes_and_every_cookie() -> None:
    """The length and the encoding were of the bytes before; cookies stand a line each."""
    seen = to_page(
        [("Set-Cookie", "a=1"), ("set-cookie", "b=2"), ("Content-Encoding", "gzip"), ("Vary", "x")]
    )
    assert seen == {"set-cookie": "a=1\nb=2", "vary": "x"}


HOSTILE = """
const to = '127.0.0.1:PORT';
const note = (name, what) => { document.body.dataset[name] = what; };
fetch(`http://${to}/fetch`, {mode: 'no-cors'}).then(() => note('fetch', 'came'), () => note('fetch', 'no'));
fetch('/redirect').then(() => note('redirect', 'came'), () => note('redirect', 'no'));
const socket = new WebSocket(`ws://${to}/socket`);
socket.onopen = () => note('socket', 'open');
new EventSource(`http://${to}/events`);
navigator.sendBeacon(`http://${to}/beacon`, 'x');
const peer = new RTCPeerConnection({iceServers: [{urls: `stun:${to}`}]});
peer.createDataChannel('x');
peer.createOffer().then(offer => peer.setLocalDescription(offer));
try { new WebTransport(`https://${to}/transport`); } catch (refused) {}
new Worker('/worker.js');
navigator.serviceWorker.register('/service.js').then(() => note('service', 'runs'), () => note('service', 'no'));
window.open(`http://${to}/window`);
const link = document.createElement('a');
link.href = `http://${to}/download`; link.download = 'x'; link.click();
const other = document.createElement('a');
other.href = `http://${to}/elsewhere`; other.target = '_blank'; other.click();
alert('stop'); confirm('stop'); prompt('stop');
fetch('/post', {method: 'POST', body: 'x'}).then(() => note('post', 'came'), () => note('post', 'no'));
document.body.insertAdjacentHTML('beforeend', `
  <img src="http://${to}/image"><iframe src="http://${to}/frame"></iframe><iframe src="file:///etc/passwd"></iframe>
  <video src="http://${to}/film" autoplay></video><object data="http://${to}/object"></object>
  <iframe src="data:text/html,<img src=http://${to}/from-data>"></iframe>
  <form action="http://${to}/form" method="post" target="f"><input name=a></form><iframe name="f"></iframe>`);
document.forms[0].submit();
"""
HEAD = """
<link rel="prefetch" href="http://127.0.0.1:PORT/prefetch"><link rel="preconnect" href="http://127.0.0.1:PORT">
<link rel="dns-prefetch" href="//127.0.0.1:PORT"><link rel="preload" as="image" href="http://127.0.0.1:PORT/preload">
<link rel="modulepreload" href="http://127.0.0.1:PORT/module.js"><link rel="icon" href="http://127.0.0.1:PORT/icon">
<script type="speculationrules">{"prerender": [{"urls": ["http://127.0.0.1:PORT/prerender"]}]}</script>
"""


async def test_no_request_of_a_page_reaches_a_private_address(site: Site, net: HttpNet) -> None:
    """Not by redirect, socket, WebRTC, worker, prefetch, frame, form, download or window (INV of the address guard)."""
    with listening() as private:
        port = str(private.port)
        url = site.serve(
            "/p",
            html(f"<script>{HOSTILE}</script>".replace("PORT", port), HEAD.replace("PORT", port)),
        )
        site.serve("/redirect", redirect(f"http://127.0.0.1:{port}/redirected"))
        work = f"fetch('http://127.0.0.1:{port}/worker', {{mode: 'no-cors'}})".encode()
        for path in ("/worker.js", "/service.js"):
            site.serve(path, answer(work, content_type="text/javascript"))
        found = by_role(await net.render(url))
    assert private.came == []
    shown = found["page"].text()
    for refused in ("fetch", "redirect", "post"):
        assert f'data-{refused}="no"' in shown
    assert "data-socket" not in shown
    assert site.asked["/post"] == site.asked["/service.js"] == 0


async def test_only_the_page_s_own_site_is_asked_for_data(site: Site, net: HttpNet) -> None:
    """And trackers for nothing."""
    asks = "for (const host of ['http://elsewhere.example', '']) fetch(host + '/api');"
    head = '<script src="https://www.googletagmanager.com/gtm.js"></script>'
    site.serve("/api", json("{}"))
    await net.render(site.serve("/p", html(f"<script>{asks}</script>", head)))
    assert [path for path, _ in site.requests if path != "/robots.txt"] == ["/p", "/api"]


async def test_a_page_that_asks_without_end_is_cut_off(site: Site) -> None:
    """It may ask for so many things, and is taken as it is after a while."""
    endless = "let n = 0; const more = () => fetch('/api?' + n++).finally(more); more();"
    limits = VisitLimits(settle=1.5, requests=40)
    async with Browser(BrowserConfig(limits=limits)) as browser:
        net = HttpNet(net_config(site), HostGates(MANNERS), browser=browser)
        found = by_role(await net.render(site.serve("/p", script(endless))))
        await net.aclose()
    assert "before" in found["page"].text()
    assert 0 < sum(path.startswith("/api") for path, _ in site.requests) <= 40
