"""A model request that the provider refused for what it says: the agent's fault, told in the provider's own words."""

from __future__ import annotations

from evalcore.errors import AgentError


class RefusedRequest(AgentError):
    """Carries the provider's status, code and parameter, so that the agent can be told the same.

    `retry_after_s` is when the agent may try again; None: it would be refused again.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.status = status
        self.code = code
        self.param = param
