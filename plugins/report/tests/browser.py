"""A real browser without a window, driven over WebDriver: what it shows, says, asks the network for and is pressed."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx2

CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")
DRIVER: Final = "chromedriver"
FLAGS: Final = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--window-size=1280,900",
)  # fmt: skip
LOCAL: Final = ("file:", "data:", "chrome:", "about:", "devtools:", "chrome-extension:")
TAB: Final = "\ue004"
ENTER: Final = "\ue007"
WAIT_S: Final = 60


def missing() -> str:
    """What this machine lacks for a browser; empty if nothing."""
    if not any(shutil.which(name) for name in CHROMIUM):
        return "chromium"
    return "" if shutil.which(DRIVER) else DRIVER


class Browser:
    """One window. Close it at the end: its processes go, and so does its profile."""

    def __init__(self) -> None:
        self._profile = tempfile.mkdtemp(prefix="evalcore-browser-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._driver = subprocess.Popen(
            [str(shutil.which(DRIVER)), f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._http = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=WAIT_S)
        try:
            self._wait_for_driver()
            self._session = self._open()
        except BaseException:
            self.close()
            raise

    def _wait_for_driver(self) -> None:
        end = time.monotonic() + WAIT_S
        while True:
            try:
                if self._http.get("/status").json()["value"]["ready"]:
                    return
            except httpx2.TransportError:
                pass
            if time.monotonic() > end:
                raise TimeoutError("chromedriver does not answer")
            time.sleep(0.05)

    def _open(self) -> str:
        program = next(found for name in CHROMIUM if (found := shutil.which(name)))
        options = {"binary": program, "args": [*FLAGS, f"--user-data-dir={self._profile}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        session = self._http.post("/session", json={"capabilities": {"alwaysMatch": wanted}}).json()["value"]
        return str(session["sessionId"])

    def close(self) -> None:
        """End the browser and its driver."""
        if hasattr(self, "_session"):
            self._http.delete(f"/session/{self._session}")
        self._http.close()
        self._driver.terminate()
        try:
            self._driver.wait(10)
        except subprocess.TimeoutExpired:
            self._driver.kill()
            self._driver.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = self._http.post(f"/session/{self._session}/{path}", json=dict(body)).json()["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(f"{answer['error']}: {answer['message'][:500]}")
        return answer

    def cdp(self, command: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol."""
        return self._post("goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url: str) -> None:
        """Go to a page and wait until it has loaded."""
        self._post("url", {"url": url})

    def js(self, script: str, *arguments: Any) -> Any:
        """What a script returns in the page."""
        return self._post("execute/sync", {"script": script, "args": list(arguments)})

    def until(self, script: str, *arguments: Any) -> Any:
        """Wait until a script returns something true."""
        end = time.monotonic() + WAIT_S
        while not (value := self.js(script, *arguments)):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {script}")
            time.sleep(0.05)
        return value

    def press(self, *keys: str) -> None:
        """Keys, one after the other, wherever the focus is."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._post("actions", {"actions": [{"type": "key", "id": "keys", "actions": strokes}]})

    def size(self, width: int, height: int = 900, *, phone: bool = False) -> None:
        """The window as a screen of that many pixels."""
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def colours(self, scheme: str) -> None:
        """`light` or `dark`, as the reader's system would have it."""
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """What is on the screen, or all of the page, as a PNG."""
        shot = self.cdp(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole, **(self._clip() if whole else {})
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def _clip(self) -> Mapping[str, Any]:
        box = self.js("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        return {"clip": {"x": 0, "y": 0, "width": box[0], "height": box[1], "scale": 1}}

    def complaints(self) -> list[str]:
        """Everything that the console was told since the last time: errors, warnings, blocked scripts."""
        return [entry["message"] for entry in self._post("se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """Every address that was asked for since the last time, but files and parts of the page itself."""
        found = []
        for entry in self._post("se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(LOCAL):
                    found.append(url)
        return found
