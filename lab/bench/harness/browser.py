"""A headless browser that is controlled through its debugging pipe."""

import base64
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# A browser that is silent for this long has failed.
PATIENCE_SECONDS = 60


def find():
    """A browser's path: MERGANSER_BROWSER, or an installed one; None if there is no browser."""
    return os.environ.get("MERGANSER_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a browser that runs as long as the `with` block."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.sending = os.pipe()
        self.receiving, from_browser = os.pipe()
        # The pipe is file descriptors 3 and 4 of the browser.
        command = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        flags += [f"--user-data-dir={self.profile.name}", "--no-first-run", "--disable-dev-shm-usage"]
        self.process = subprocess.Popen(
            ["timeout", "-k", "5", str(PATIENCE_SECONDS), "bash", "-c", command, self.path, *flags],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.number, self.session, self.events = b"", 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        os.close(self.sending)
        self.process.terminate()
        self.process.wait()
        os.close(self.receiving)
        self.profile.cleanup()

    def ask(self, method, **parameters):
        """Calls a method of the protocol and returns its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.sending, json.dumps(message).encode() + b"\0")
        while True:
            message = self.receive()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def receive(self):
        while b"\0" not in self.rest:
            more = os.read(self.receiving, 1 << 20)
            if not more:
                raise RuntimeError(f"{self.path}: ended without an answer")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, page, width, scheme):
        """Shows the file `page`, `width` pixels wide, in the colours of `scheme`: light or dark."""
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)
        self.events = []
        self.ask("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())

    def value(self, expression):
        """The value of a JavaScript expression on the page."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def requests(self):
        """All requests of the page since it was opened."""
        asked = (event for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in asked]

    def complaints(self):
        """The errors that the browser found in the page."""
        kinds = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening")
        return [event["params"] for event in self.events if event.get("method") in kinds]

    def screenshot(self, path):
        """The whole page as a picture."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
