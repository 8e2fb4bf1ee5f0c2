"""The live page in a real browser: it follows a fail-over of a simulated set, whose real views it shows."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import trio

from replispec.runtime.net.clock import Clock
from replispec.runtime.net.live_page_shell import live_page
from replispec.runtime.net.log_shell import Log
from replispec.runtime.net.seen_shell import SeenServer
from replispec.runtime.seeing.answers import Answers, Seen, ShownPage
from replispec.runtime.seeing.http import HttpAnswer, HttpRequest
from replispec.runtime.world import Level
from tests.broker.simulated_set import BrokerSet
from tests.broker.test_seen_set import numbers
from tests.replay.browser import BROWSER, show

pytestmark = pytest.mark.skipif(
    shutil.which(BROWSER) is None and os.environ.get("CI") != "true", reason=f"{BROWSER} is not installed"
)

# Looks at the page whenever it changes, tells the test when something is there to be seen, and holds the
# browser's own end (an image of a server that never answers) until all was.
WATCH = """
<script>
{
const seen = [];
const texts = query => [...document.querySelectorAll(query)].map(element => element.textContent);
const wanted = [
  ["first", () => texts("caption").some(text => text.includes("masterEpoch 1"))],
  ["second", () => texts("caption").some(text => text.includes("masterEpoch 2"))],
];
const look = () => {
  while (wanted.length && wanted[0][1]()) {
    const [what] = wanted.shift();
    seen.push({ what, captions: texts("caption"), rows: texts("tbody tr"), lines: texts("#lines li"),
      link: texts("#link")[0], name: texts("#name")[0] });
    if (what === "second") {
      at("only").focus();
      at("only").click();
      document.documentElement.dataset.seen = JSON.stringify({
        seen, troubled: texts("caption").length, focus: document.activeElement.id,
        wide: document.documentElement.scrollWidth, window: document.documentElement.clientWidth,
        stops: [...document.querySelectorAll("a, input, [tabindex]")].map(each => each.id),
        paper: getComputedStyle(document.body).backgroundColor,
        script: document.querySelectorAll("#sets b, #lines b").length,
      });
    }
    fetch("/saw/" + what);
  }
};
new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
}
</script>
<img src="HELD" alt="">
"""
POLICY = "default-src * 'unsafe-inline'"


class _Watched(Answers):
    """The same answers, with a page that tells what it shows."""

    def __init__(self, node: Seen, held: str) -> None:
        watch = WATCH.replace("HELD", held).encode()
        html = live_page().html.replace(b"</body>", watch + b"</body>")
        super().__init__([node], ShownPage(html, POLICY))
        self.saw: list[str] = []

    def respond(self, asked: HttpRequest) -> HttpAnswer:
        if asked.path.startswith("/saw/"):
            self.saw.append(asked.path.rpartition("/")[2])
            return HttpAnswer(200, "text/plain", b"")
        return super().respond(asked)


def _listener() -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.bind(("127.0.0.1", 0))
    sock.listen(64)
    return sock


async def _until(answers: _Watched, what: str) -> None:
    while what not in answers.saw:
        await trio.sleep(0.01)


async def _follow(cluster: BrokerSet, home: Path, *arguments: str, width: int = 1280) -> Any:
    view: Any = cluster.world.processes["controller"].nodes[0].view  # type: ignore[attr-defined]
    clock = Clock()
    node = Seen("controller", view, lambda: replace(numbers(), now_ms=clock.now_ms()))
    log = Log(io.StringIO(), Level.DEBUG, clock.now_us)
    shown = list[Any]()

    def noted(name: str, note: Any) -> None:
        if name == "controller":
            log.write(note.level, name, note.what, {**view.who(), **note.values})

    cluster.world.notes = noted
    with _listener() as listener, _listener() as held:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        answers = _Watched(node, f"http://127.0.0.1:{held.getsockname()[1]}/")
        server = SeenServer([node], log, answers)

        async def browse() -> None:
            look = partial(show, url, home, "--dump-dom", *arguments, width=width)
            shown.append(await trio.to_thread.run_sync(look))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(browse)
            with trio.CancelScope() as serving:
                async with trio.open_nursery() as inside:
                    inside.start_soon(server.run, [listener])
                    await _until(answers, "first")
                    cluster.world.kill("broker1")
                    cluster.until(lambda: cluster.broker(2).serves)
                    await _until(answers, "second")
                    held.close()
                    serving.cancel()
    (found,) = shown
    said = found.output.partition('data-seen="')[2].partition('"')[0]
    return json.loads(unescape(said))


@pytest.fixture
def cluster() -> BrokerSet:
    """Two brokers, both in the set."""
    found = BrokerSet()
    found.pair()
    return found


def _by(found: Mapping[str, Any]) -> dict[str, Any]:
    return {each["what"]: each for each in found["seen"]}


@pytest.mark.trio
async def test_the_page_follows_a_fail_over_as_it_happens(cluster: BrokerSet, tmp_path: Path) -> None:
    with trio.fail_after(120):
        found = await _follow(cluster, tmp_path / "home")
    first, second = _by(found)["first"], _by(found)["second"]
    assert first["captions"] == ["broker-a (C) master 1, masterEpoch 1, SyncStateSet epoch 2"]
    assert first["rows"] == ["110.0.1.1:10911masteralive0", "210.0.1.2:10911in syncalive0"]
    assert first["link"].startswith("connected")
    assert first["name"] == "controller n0 of replispec"
    assert second["captions"] == ["broker-a (C) master 2, masterEpoch 2, SyncStateSet epoch 3"]
    assert second["rows"] == ["110.0.1.1:10911not in syncnot heard", "210.0.1.2:10911masteralive0"]
    assert found["troubled"] == 1


@pytest.mark.trio
async def test_the_page_is_used_by_keyboard_fits_a_telephone_and_is_dark_where_that_is_wanted(
    cluster: BrokerSet, tmp_path: Path
) -> None:
    with trio.fail_after(120):
        found = await _follow(
            cluster, tmp_path / "home", "--blink-settings=preferredColorScheme=0", width=500
        )
    assert found["stops"] == ["skip", "only", "hold", "sets", "lines"]
    assert found["focus"] == "only"
    assert found["wide"] <= found["window"]
    assert found["paper"] == "rgb(20, 24, 29)"


def test_the_page_loads_nothing_from_elsewhere_and_puts_no_text_in_as_markup() -> None:
    page = live_page()
    text = page.html.decode()
    assert "http" not in text.replace("http-equiv", "")
    assert "innerHTML" not in text
    assert "'unsafe" not in page.policy
    assert page.policy.startswith("default-src 'none'")


@pytest.mark.trio
async def test_its_own_policy_lets_the_page_run(cluster: BrokerSet, tmp_path: Path) -> None:
    view: Any = cluster.world.processes["controller"].nodes[0].view  # type: ignore[attr-defined]
    node = Seen("controller", view, numbers)
    server = SeenServer([node], Log(io.StringIO(), Level.DEBUG, Clock().now_us))
    with _listener() as listener, trio.fail_after(120):
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run, [listener])
            look = partial(show, url, tmp_path / "home", "--dump-dom")
            shown = await trio.to_thread.run_sync(look)
            nursery.cancel_scope.cancel()
    assert shown.console == ()
    assert 'id="sets"' in shown.output
