"""A headless Chromium that is driven over its debugging pipe: real clicks and keys, the page's errors and requests.

Standard library only. It is a library; report_browser.py is the test.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class PageError(Exception):
    """A failure of the page or the browser."""


class Browser:
    """One page of one browser; `errors` and `requests` collect the errors and requests of the page."""

    def __init__(self, program):
        self.errors, self.requests = [], []
        self._folder = tempfile.mkdtemp(prefix="hoist-browser-")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # Descriptors above 4, so that using descriptors 3 and 4 overwrites neither.
        ends = [os.dup(to_browser) for _ in range(8)][-1], [os.dup(from_browser) for _ in range(8)][-1]
        self._process = subprocess.Popen(
            [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-extensions",
             "--user-data-dir=" + self._folder, "about:blank"],
            preexec_fn=lambda: (os.dup2(ends[0], 3), os.dup2(ends[1], 4)), pass_fds=(3, 4),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._pending, self._number, self._session = b"", 0, None
        target = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _message(self, deadline):
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise PageError("the browser does not answer")
            chunk = os.read(self._read, 1 << 16)
            if not chunk:
                raise PageError("the browser ended")
            self._pending += chunk
        message, self._pending = self._pending.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        method, what = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.errors.append(what["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning"):
            self.errors.append(str(what["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.errors.append("a dialog: " + what["message"])

    def call(self, method, seconds=60, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + seconds
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise PageError(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def settle(self):
        """Waits until the requested drawing is finished."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def open(self, path, width=1280, height=900, phone=False, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1,
                  mobile=phone)
        # Scrolling is instantaneous then, so that places are where they are measured.
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                            {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        deadline = time.monotonic() + 60
        while self.evaluate("document.readyState + location.protocol") != "completefile:":
            if time.monotonic() > deadline:
                raise PageError("the page does not finish loading")
        self.settle()

    def click(self, selector):
        """A real click in the middle of the element; another element on top is an error."""
        place = self.evaluate("""(() => {
          const element = document.querySelector(%s);
          if (!element) return null;
          element.scrollIntoView({block: "center", inline: "center"});
          const box = element.getBoundingClientRect();
          const x = box.x + box.width / 2, y = box.y + box.height / 2;
          const top = document.elementFromPoint(x, y);
          return {x, y, hit: !!top && (element.contains(top) || top.contains(element)), top: top && top.outerHTML.slice(0, 80)};
        })()""" % json.dumps(selector))
        if place is None:
            raise PageError(f"nothing is {selector}")
        if not place["hit"]:
            raise PageError(f"{selector} is covered by {place['top']}")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place["x"], y=place["y"], button="left", clickCount=1)
        self.settle()

    def hover(self, selector):
        box = self.evaluate("(e => { e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
                            "return [b.x + b.width / 2, b.y + b.height / 2] })(document.querySelector(%s))"
                            % json.dumps(selector))
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
        self.settle()

    def key(self, name, code, text=""):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, windowsVirtualKeyCode=code, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code)
        self.settle()

    def type(self, selector, text):
        self.click(selector)
        self.call("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])
