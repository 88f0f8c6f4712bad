"""Reading files over HTTP with resumption, for hubs."""

from collections.abc import Iterator
from typing import Any

import httpx

from capacity.weights.errors import FetchError, TransferError

_TIMEOUT = httpx.Timeout(30.0, read=60.0)


class HttpReader:
    """A client of one hub; `token` is presented to it alone, and not to the storage that it redirects to."""

    def __init__(self, base: str, token: str | None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=base.rstrip("/"), headers=headers, timeout=_TIMEOUT, follow_redirects=True)

    def json(self, path: str, missing: str, **parameters: str) -> tuple[Any, str | None]:
        """A JSON document and the address of its next page; `missing` is what to say where there is none."""
        try:
            answer = self._client.get(path, params=parameters)
        except httpx.HTTPError as error:
            raise TransferError(f"{self._client.base_url}: {error or type(error).__name__}") from None
        if answer.status_code in (401, 403):
            raise FetchError(f"{self._client.base_url} answers {answer.status_code}: check weights.credentialsSecret")
        if answer.status_code == 404:
            raise FetchError(missing)
        if answer.status_code != 200:
            raise TransferError(f"{answer.url} answers {answer.status_code}")
        return answer.json(), answer.links.get("next", {}).get("url")

    def read(self, path: str, offset: int) -> Iterator[bytes]:
        """A file's bytes from an offset; from a hub that ignores ranges, what is there already is read past."""
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={offset}-"} if offset else {})}
        try:
            with self._client.stream("GET", path, headers=headers) as answer:
                if answer.status_code not in (200, 206):
                    raise TransferError(f"{path} answers {answer.status_code}")
                skip = offset if answer.status_code == 200 else 0
                for chunk in answer.iter_raw():
                    rest = chunk[skip:]
                    skip = max(0, skip - len(chunk))
                    if rest:
                        yield rest
        except httpx.HTTPError as error:
            raise TransferError(f"{path}: {error or type(error).__name__}") from None
