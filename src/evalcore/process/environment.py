"""What a child process may see of our environment: an allow-list, so that no key reaches code we did not write."""

from __future__ import annotations

import os
from collections.abc import Mapping

_NAMES = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
)
# Thread counts and kernels of numerical libraries are facts of the machine: without them old builds compute wrongly.
_PREFIXES = ("LC_", "MKL_", "OMP_", "OPENBLAS_")
_NETWORK = frozenset(
    {"ALL_PROXY", "CURL_CA_BUNDLE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR"}
    | {"SSL_CERT_FILE"}
)
# Only what says where packages come from. PIP_TARGET, PIP_USER and the like would install into the wrong place.
_PIP = frozenset(
    f"PIP_{name}"
    for name in (
        *("CACHE_DIR", "CERT", "CLIENT_CERT", "CONFIG_FILE", "CONSTRAINT", "DEFAULT_TIMEOUT", "EXTRA_INDEX_URL"),
        *("FIND_LINKS", "INDEX_URL", "KEYRING_PROVIDER", "NO_CACHE_DIR", "NO_INDEX", "PROXY", "RETRIES", "TIMEOUT"),
        "TRUSTED_HOST",
    )
)


def clean_environment(
    extra: Mapping[str, str] | None = None,
    *,
    network: bool = False,
    pip: bool = False,
    source: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The allowed part of `source` (default: ours) and `extra`; `network` adds proxies and certificates, `pip` indexes.

    A proxy's or an index's address can hold a password: ask for them only for programs that are to reach the network.
    """
    source = os.environ if source is None else source
    kept = {name: value for name, value in source.items() if _allowed(name, network=network, pip=pip)}
    return {**kept, **(extra or {})}


def _allowed(name: str, *, network: bool, pip: bool) -> bool:
    if name in _NAMES or name.startswith(_PREFIXES):
        return True
    return (network and name.upper() in _NETWORK) or (pip and name in _PIP)
