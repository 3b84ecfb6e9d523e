"""Fetch a pinned file once: resumed where it broke off, verified, and only then given its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from evalcore.datasets.cache import PinnedFile, sha256_file, verify
from evalcore.datasets.lock import locked
from evalcore.errors import FatalInfraError, InfraError

if TYPE_CHECKING:
    import httpx2

Progress = Callable[[int, int | None], None]
_TIMEOUT_S = 60.0  # of silence, not of the whole download


async def fetch(
    pinned: PinnedFile,
    folder: Path,
    *,
    progress: Progress | None = None,
    client: httpx2.AsyncClient | None = None,
) -> Path:
    """`pinned` as a verified file in `folder`, downloaded if missing, and resumed if that broke off before.

    `progress` gets bytes so far and, if known, in all. Raises InfraError for the network and for an unexpected file.
    """
    target = folder / pinned.name
    async with locked(target.with_name(f".{target.name}.lock")):
        if target.exists():
            await asyncio.to_thread(verify, target, pinned.sha256)
            return target
        if pinned.url is None:
            raise InfraError(f"{target} is missing", hint=f"put the file with sha256 {pinned.sha256} there")
        part = target.with_name(f"{target.name}.part")
        await _download(pinned, pinned.url, part, progress, client)
        await asyncio.to_thread(_accept, part, target, pinned)
    return target


def _accept(part: Path, target: Path, pinned: PinnedFile) -> None:
    found = sha256_file(part)
    if found != pinned.sha256:
        part.unlink()
        raise InfraError(
            f"{pinned.url} is not the pinned {pinned.name}: sha256 {found}, expected {pinned.sha256}",
            hint="the file behind the address changed, or something between changed it; nothing was kept",
        )
    part.replace(target)


async def _download(
    pinned: PinnedFile, url: str, part: Path, progress: Progress | None, client: httpx2.AsyncClient | None
) -> None:
    import httpx2  # half a second of imports that only a download pays

    async with AsyncExitStack() as stack:
        try:
            if client is None:
                client = await stack.enter_async_context(httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=True))
            had = _size(part)
            headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={had}-"} if had else {})
            async with client.stream("GET", url, headers=headers) as response:
                # A part that is complete, or longer than the file, cannot be gone on from: its digest decides.
                if response.status_code == 416 and had:
                    return
                response.raise_for_status()
                await _receive(response, part, had if response.status_code == 206 else 0, pinned.size, progress)
        except httpx2.HTTPStatusError as error:
            raise InfraError(f"{url} answered {error.response.status_code}") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise InfraError(
                f"cannot download {url}: {str(error) or type(error).__name__}",
                hint="check the network, then run it again",
            ) from error


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


async def _receive(
    response: httpx2.Response, part: Path, had: int, size: int | None, progress: Progress | None
) -> None:
    announced = response.headers.get("Content-Length", "")
    total = size if size is not None else had + int(announced) if announced.isdigit() else None
    try:
        with part.open("ab" if had else "wb") as file:
            async for chunk in response.aiter_raw():
                had += file.write(chunk)
                if size is not None and had > size:
                    break  # not the pinned file, and it may have no end
                if progress:
                    progress(had, total)
    except OSError as error:
        raise FatalInfraError(f"cannot write {part}: {error.strerror}") from error
