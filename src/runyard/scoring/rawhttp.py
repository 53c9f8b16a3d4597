"""Request and response objects for scoring scripts that use ``rawhttp``."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Mapping
from typing import Any, Optional
from urllib.parse import parse_qsl

MARK = "_runyard_rawhttp"


class Headers(dict[str, str]):
    """Case-insensitive headers."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__({name.title(): value for name, value in headers.items()})

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.title())

    def __contains__(self, name: object) -> bool:
        return super().__contains__(str(name).title())

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.title(), default)


class Part(io.BytesIO):
    """An uploaded file of a form."""

    filename: Optional[str] = None


class AMLRequest:
    """The request: method, headers, query arguments, data, JSON and forms."""

    def __init__(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.query_string = query.encode()
        self.full_path = f"{path}?{query}"
        self.headers = Headers(headers)
        self.url = f"http://{self.headers.get('host', 'localhost')}{path}" + (f"?{query}" if query else "")
        self.args = dict(parse_qsl(query, keep_blank_values=True))
        self.data = body
        self.content_type = self.headers.get("content-type")
        self.mimetype = (self.content_type or "").partition(";")[0].strip().lower()
        self.content_length = len(body)

    @property
    def is_json(self) -> bool:
        return self.mimetype == "application/json" or self.mimetype.endswith("+json")

    @property
    def json(self) -> Any:
        return self.get_json()

    @property
    def form(self) -> dict[str, str]:
        if self.mimetype == "application/x-www-form-urlencoded":
            return dict(parse_qsl(self.data.decode("utf-8", "replace"), keep_blank_values=True))
        return {name: part.read().decode("utf-8", "replace") for name, part in self._parts() if not part.filename}

    @property
    def files(self) -> dict[str, Any]:
        return {name: part for name, part in self._parts() if part.filename}

    def get_data(self, cache: bool = True, as_text: bool = False, parse_form_data: bool = False) -> Any:
        return self.data.decode("utf-8") if as_text else self.data

    def get_json(self, force: bool = False, silent: bool = False, cache: bool = True) -> Any:
        if not (force or self.is_json):
            return None
        try:
            return json.loads(self.data)
        except ValueError:
            if silent:
                return None
            raise

    def _parts(self) -> list[tuple[str, Part]]:
        if self.mimetype != "multipart/form-data":
            return []
        from email.parser import BytesParser
        from email.policy import HTTP

        head = f"content-type: {self.content_type}\r\n\r\n".encode("latin-1")
        parts = []
        for part in BytesParser(policy=HTTP).parsebytes(head + self.data).iter_parts():
            content: Any = part.get_payload(decode=True)
            file = Part(content or b"")
            file.filename = part.get_filename()
            parts.append((str(part.get_param("name", "", header="content-disposition")), file))
        return parts


class AMLResponse:
    """A response with a status code and headers."""

    def __init__(
        self,
        message: Any,
        status_code: int,
        response_headers: Optional[Mapping[str, str]] = None,
        *args: Any,
        json_str: Optional[bool] = None,
        run_function_failed: bool = False,
        **rest: Any,
    ) -> None:
        self.message = message
        self.status_code = status_code
        self.headers: dict[str, str] = dict(response_headers or {})
        self.json_str = json_str

    def encoded(self, dumps: Callable[[Any], bytes]) -> tuple[bytes, str]:
        """The body and its content type."""
        kind = next((value for name, value in self.headers.items() if name.lower() == "content-type"), None)
        if isinstance(self.message, (bytes, bytearray)):
            return bytes(self.message), kind or "application/octet-stream"
        if isinstance(self.message, str) and not self.json_str:
            return self.message.encode("utf-8"), kind or "text/html; charset=utf-8"
        return dumps(self.message), kind or "application/json"


def rawhttp(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a ``run`` function that takes an AMLRequest and accepts every HTTP method."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    setattr(wrapper, MARK, True)
    return wrapper
