"""Where whoever plays a trial by hand says that a turn is over: `POST /d/{token}`, the body is the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from evalcore.wires.http.door import Door
from evalcore.wires.http.exchange import Exchange, TooLarge, write_json

BODY_CAP: Final = 1 << 20


class DoneDoor(Door):
    """Hands the answer to `over`, which says whether anybody was waiting for one."""

    def __init__(self, url: str, forget: Callable[[], None], over: Callable[[str | None], bool]) -> None:
        super().__init__(url, forget, None)
        self._over = over

    async def serve(self, exchange: Exchange) -> None:
        """One answer, as UTF-8 text; without a body there is none."""
        if exchange.method != "POST":
            await exchange.reply(405, write_json({"error": {"message": "POST the answer here, or nothing"}}))
            return
        try:
            body = await exchange.body(BODY_CAP)
        except TooLarge:
            await exchange.reply(413, write_json({"error": {"message": f"the answer is over {BODY_CAP} bytes"}}))
            return
        taken = self._over(body.decode("utf-8", "replace") if body else None)
        answer = {"taken": True} if taken else {"error": {"message": "nobody waits for an answer now"}}
        await exchange.reply(200 if taken else 409, write_json(answer))
