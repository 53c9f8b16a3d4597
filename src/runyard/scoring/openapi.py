"""The description of a service: OpenAPI 3, from what the scoring script says of itself."""

from __future__ import annotations

from typing import Any, Optional


def document(
    service: str,
    version: int,
    takes: Optional[dict[str, Any]],
    gives: Optional[dict[str, Any]],
    methods: tuple[str, ...],
    needs_key: bool,
    description: str = "",
) -> dict[str, Any]:
    """``takes`` and ``gives`` are schemas; None = nothing is known of it."""
    problem = {"$ref": "#/components/schemas/Problem"}

    def answers(*codes: tuple[int, str]) -> dict[str, Any]:
        return {
            str(code): {"description": text, "content": {"application/json": {"schema": problem}}}
            for code, text in codes
        }

    result: dict[str, Any] = {
        "200": {
            "description": "the result",
            "headers": {"x-request-id": {"schema": {"type": "string"}}},
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ServiceOutput"}}},
        },
        **answers((400, "the body is not what the service takes"), (413, "the body is too large")),
        **answers((408, "the request did not arrive in time"), (500, "the scoring script failed")),
        **answers((503, "too much at once: come back in a moment"), (504, "it took too long")),
    }
    if needs_key:
        result.update(answers((401, "a key is missing, or not one of this service's")))
    score: dict[str, Any] = {"operationId": "RunMLService", "summary": "Score", "responses": result}
    if len(methods) == 1:
        content = {"schema": {"$ref": "#/components/schemas/ServiceInput"}}
        score["requestBody"] = {"required": True, "content": {"application/json": content}}
    else:  # a script that is given the request itself: it alone knows what it answers
        score["responses"] = {"default": {"description": "whatever the scoring script answers"}}
        result["default"] = score["responses"]["default"]
    if needs_key:
        score["security"] = [{"key": []}]
    components: dict[str, Any] = {
        "schemas": {
            "ServiceInput": takes if takes is not None else {"description": "whatever the scoring script reads"},
            "ServiceOutput": gives if gives is not None else {"description": "whatever the scoring script gives"},
            "Problem": {
                "type": "object",
                "required": ["error"],
                "properties": {
                    "error": {
                        "type": "object",
                        "required": ["message"],
                        "properties": {"message": {"type": "string"}, "request_id": {"type": "string"}},
                    }
                },
            },
        }
    }
    if needs_key:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.0.3",
        "info": {
            "title": service,
            "description": description or f"The service {service}, by Runyard.",
            "version": str(version),
        },
        "paths": {
            "/": {"get": _plain("ServiceHealthCheck", "Whether it is well", "text/plain")},
            "/healthz": {"get": _plain("Health", "Whether it is well, and which version answers", "application/json")},
            "/score": {
                method.lower(): {**score, "operationId": f"RunMLService{'' if method == 'POST' else method.title()}"}
                for method in methods
                if method != "HEAD"
            },
        },
        "components": components,
    }


def _plain(name: str, summary: str, kind: str) -> dict[str, Any]:
    schema = {"type": "string"} if kind == "text/plain" else {"type": "object"}
    answer = {"description": "it is well", "content": {kind: {"schema": schema}}}
    return {"operationId": name, "summary": summary, "responses": {"200": answer}}
