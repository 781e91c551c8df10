"""Responses that take long: a limited number of them at a time, each sent as its client reads it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import ContentStream, StreamingResponse
from starlette.types import Receive, Scope, Send

RETRY_S: Final = 15
_CHUNK: Final = 1 << 16


class LongResponses:
    """The responses of one kind that are being sent."""

    def __init__(self) -> None:
        self.open = 0

    def check(self, most: int, refusal: str) -> None:
        """Raise an error response that says `refusal` if `most` are being sent."""
        if self.open >= most:
            raise HTTPException(503, refusal, headers={"Retry-After": str(RETRY_S)})

    def response(
        self, content: ContentStream, *, media_type: str, headers: Mapping[str, str] | None = None
    ) -> StreamingResponse:
        """Return a response with this content."""
        return _LongResponse(self, content, media_type, headers)


class _LongResponse(StreamingResponse):
    """One response; it counts as open until its connection is closed, even before its first byte."""

    def __init__(
        self, responses: LongResponses, content: ContentStream, media_type: str, headers: Mapping[str, str] | None
    ) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self._responses = responses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._responses.open += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._responses.open -= 1


async def joined(texts: Sequence[str]) -> AsyncIterator[str]:
    """Yield a JSON array in chunks. Its texts are those of the feed: a slow client needs no copy of them."""
    chunk, size = ["["], 0
    for at, text in enumerate(texts):
        chunk.append(f",{text}" if at else text)
        size += len(text)
        if size >= _CHUNK:
            yield "".join(chunk)
            chunk, size = [], 0
    yield "".join([*chunk, "]"])


async def sliced(content: bytes) -> AsyncIterator[bytes]:
    """Yield a content in chunks, so that no copy of it waits for a slow client."""
    for start in range(0, len(content), _CHUNK):
        yield content[start : start + _CHUNK]
