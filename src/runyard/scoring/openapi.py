"""The OpenAPI 3 document of a service, from the schemas of its scoring script."""

from __future__ import annotations

from typing import Any, Optional


def document(
    service: str,
    version: int,
    input_schema: Optional[dict[str, Any]],
    output_schema: Optional[dict[str, Any]],
    methods: tuple[str, ...],
    needs_key: bool,
    description: str = "",
) -> dict[str, Any]:
    """Build the document. A schema is None if the script does not declare it."""
    problem = {"$ref": "#/components/schemas/Problem"}

    def errors(*codes: tuple[int, str]) -> dict[str, Any]:
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
        **errors((400, "the request body does not match the schema"), (413, "the request body is too large")),
        **errors((408, "the request did not arrive in time"), (500, "the scoring script failed")),
        **errors((503, "too many requests: try again later"), (504, "the scoring script exceeded the time limit")),
    }
    if needs_key:
        result.update(errors((401, "missing or invalid key")))
    score: dict[str, Any] = {"operationId": "RunMLService", "summary": "Score", "responses": result}
    if len(methods) == 1:
        content = {"schema": {"$ref": "#/components/schemas/ServiceInput"}}
        score["requestBody"] = {"required": True, "content": {"application/json": content}}
    else:  # rawhttp: only the script knows its responses
        score["responses"] = {"default": {"description": "defined by the scoring script"}}
        result["default"] = score["responses"]["default"]
    if needs_key:
        score["security"] = [{"key": []}]
    components: dict[str, Any] = {
        "schemas": {
            "ServiceInput": input_schema if input_schema is not None else {"description": "not declared"},
            "ServiceOutput": output_schema if output_schema is not None else {"description": "not declared"},
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
            "description": description or f"Runyard service {service}",
            "version": str(version),
        },
        "paths": {
            "/": {"get": _plain("ServiceHealthCheck", "Health check", "text/plain")},
            "/healthz": {"get": _plain("Health", "Health check with the serving version", "application/json")},
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
    response = {"description": "healthy", "content": {kind: {"schema": schema}}}
    return {"operationId": name, "summary": summary, "responses": {"200": response}}
