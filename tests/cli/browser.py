# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium (WEFT_CHROMIUM), driven over the two pipes of its protocol: it looks at pages as a reader does."""
import base64
import contextlib
import json
import os
import subprocess
import tempfile

WIDTHS = (400, 1400)
SCHEMES = ("light", "dark")
LEAST_CONTRAST = 4.5
# Boxes of text that overlap within a drawing, texts without contrast, parts that are wider than their place, and the
# width that the page needs.
LOOK = """(() => {
  const shown = e => { const b = e.getBoundingClientRect(); return b.width > 0 && b.height > 0; };
  const overlaps = [], pale = [];
  for (const svg of document.querySelectorAll('svg:not(.defs)')) {
    const texts = [...svg.querySelectorAll('text')].filter(shown).map(e => [e.textContent, e.getBoundingClientRect()]);
    texts.forEach(([name, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
      if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
        overlaps.push([name, other]);
    }));
  }
  const numbers = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const luminance = c => 0.2126 * light(c[0]) + 0.7152 * light(c[1]) + 0.0722 * light(c[2]);
  const paper = e => {
    for (; e; e = e.parentElement) {
      const c = numbers(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || !e || !shown(e) || e.closest('title, style, script')) continue;
    if (e.classList.contains('in')) continue;  // on a coloured box, whose hues have the contrast
    const style = getComputedStyle(e), colour = e.closest('svg') ? style.fill : style.color;
    const [low, high] = [luminance(numbers(colour)), luminance(paper(e))].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < LEAST) pale.push([node.data.trim().slice(0, 40), contrast]);
  }
  const cut = [...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth + 1)
    .map(e => e.textContent.trim().slice(0, 40));
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  return {overlaps, pale, cut, width: document.documentElement.scrollWidth, paint_ms: paint ? paint.startTime : null};
})()""".replace("LEAST)", f"{LEAST_CONTRAST})")

# Ends with the first paint, or without one after two seconds: then its time is not known.
PAINTED = """new Promise(done => {
  new PerformanceObserver(() => setTimeout(done, 0)).observe({type: 'paint', buffered: true});
  setTimeout(done, 2000);
})"""


class Browser:
    """One Chromium for a `with` block."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.writes = os.pipe()
        self.reads, to_write = os.pipe()
        # Chromium reads its commands from descriptor 3 and writes to 4.
        shell = f"exec 3<&{to_read} 4>&{to_write}; exec \"$0\" \"$@\""
        self.process = subprocess.Popen(
            ["bash", "-c", shell, program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={self.folder.name}", "about:blank"], pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Network"):
            self.call(f"{part}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError, AssertionError):
            self.session = None
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=20)
        self.process.kill()
        self.process.wait()
        os.close(self.writes)
        os.close(self.reads)
        self.folder.cleanup()

    def message(self):
        while b"\0" not in self.rest:
            part = os.read(self.reads, 1 << 20)
            assert part, "the browser has ended"
            self.rest += part
        first, self.rest = self.rest.split(b"\0", 1)
        return json.loads(first)

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.writes, json.dumps(command).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                assert "result" in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def wait_for_load(self, loader):
        """The blank page before has events too."""
        def is_loaded(event):
            told = event.get("params", {})
            return event.get("method") == "Page.lifecycleEvent" and told["loaderId"] == loader and told["name"] == "load"
        while not any(map(is_loaded, self.events)):
            self.events.append(self.message())

    def look(self, path, width, scheme, media="screen", picture=None):
        """Opens a page and returns the findings of LOOK, with all addresses that it asked for and its script errors."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.wait_for_load(self.call("Page.navigate", url=f"file://{os.path.abspath(path)}")["loaderId"])
        self.call("Runtime.evaluate", awaitPromise=True, expression=PAINTED)
        found = self.call("Runtime.evaluate", expression=LOOK, returnByValue=True)["result"]["value"]
        found["asked"] = [event["params"]["request"]["url"] for event in self.events
                          if event.get("method") == "Network.requestWillBeSent"]
        found["errors"] = [event for event in self.events if event.get("method") == "Runtime.exceptionThrown"]
        if picture:
            shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
            with open(picture, "wb") as file:
                file.write(base64.b64decode(shot["data"]))
        return found


def judge(browser, path, **options):
    """Looks at a page on both widths, in both schemes and as printed. Returns first paints in milliseconds."""
    paints = []
    for width, scheme, media in [(w, s, "screen") for w in WIDTHS for s in SCHEMES] + [(794, "light", "print")]:
        found = browser.look(path, width, scheme, media, **options)
        where = (path, width, scheme, media)
        assert not found["errors"] and found["asked"] == [f"file://{os.path.abspath(path)}"], (where, found)
        assert not found["overlaps"] and not found["pale"] and found["width"] <= width, (where, found)
        assert media == "screen" or not found["cut"], (where, "paper does not scroll", found["cut"])
        paints.append(found["paint_ms"])
    return paints
