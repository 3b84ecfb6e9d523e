"""Upstream files that no wheel brings: each from its own address, and kept only if its digest is the pinned one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from evalcore.datasets.cache import PinnedFile
from evalcore.datasets.download import fetch
from evalcore.errors import FatalInfraError, InfraError, ToolkitError
from evalcore.toolkits.install import Progress
from evalcore.values.toolkit import ToolkitSpec

FETCHED: Final = "files"  # the folder in an environment, on the worker's search path
_AT_ONCE: Final = 8


async def fetch_files(spec: ToolkitSpec, folder: Path, progress: Progress) -> None:
    """All files of a toolkit that have an address, into `folder`. Raises ToolkitError."""
    import httpx2  # half a second of imports that only a download pays

    slots = asyncio.Semaphore(_AT_ONCE)
    progress(f"toolkit {spec.name}: fetching {len(spec.addresses)} files")
    async with httpx2.AsyncClient(timeout=60.0, follow_redirects=True) as client:

        async def get(name: str, address: str) -> None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            async with slots:
                await fetch(PinnedFile(name, spec.files[name], url=address), folder, client=client)

        try:
            async with asyncio.TaskGroup() as group:
                for name, address in spec.addresses.items():
                    group.create_task(get(name, address))
        except* FatalInfraError as errors:
            raise _first(errors) from None
        except* InfraError as errors:
            raise ToolkitError(
                f"toolkit {spec.name}: {_first(errors).message}",
                hint=f"where its addresses can be reached, run it again; or set {spec.variable} to a checkout",
            ) from None


def _first(errors: BaseExceptionGroup[InfraError]) -> InfraError:
    """One of a group's errors: they are of one cause, as a rule."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, InfraError)
    return error
