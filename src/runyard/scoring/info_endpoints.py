"""Endpoints with information about a service: health, description, metrics, a test form."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING

from runyard.scoring import counters
from runyard.scoring.responses import Response, problem

if TYPE_CHECKING:
    from runyard.scoring.dispatcher import Dispatcher
    from runyard.scoring.request_head import Head

OPEN = frozenset({"/", "/healthz", "/swagger.json", "/openapi.json", "/docs"})  # accessible without a key
_READ = ("GET", "HEAD")


def respond(dispatcher: Dispatcher, head: Head, request_id: str) -> Response:
    path = head.path
    if path not in OPEN and path != "/metrics":
        return problem(404, f"{path[:200]} not found; send requests to /score", request_id)
    if head.method not in _READ:
        return not_allowed(head.method, _READ, request_id)
    if path == "/":
        return Response(200, b"Healthy", "text/plain; charset=utf-8")
    if path == "/healthz":
        return Response(
            200,
            json.dumps({"status": "Healthy", "service": dispatcher.service, "version": dispatcher.version}).encode(),
        )
    if path == "/metrics":
        text = counters.prometheus(dispatcher.service, dispatcher.folder.counts)
        return Response(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")
    if path == "/docs":
        return Response(200, _page(dispatcher).encode(), "text/html; charset=utf-8")
    return Response(200, json.dumps(dispatcher.openapi).encode())


def not_allowed(method: str, allowed: tuple[str, ...], request_id: str) -> Response:
    response = problem(405, f"method {method} not allowed; use {' or '.join(allowed)}", request_id)
    return response._replace(headers=f"allow: {', '.join(allowed)}\r\n")


def _page(dispatcher: Dispatcher) -> str:
    """An HTML page with the description and a form to send a request."""
    input_schema = dispatcher.openapi.get("components", {}).get("schemas", {}).get("ServiceInput", {})
    description = dispatcher.openapi.get("info", {}).get("description", "")
    sample = json.dumps(input_schema.get("example", {}), indent=1)
    return f"""<!doctype html><meta charset="utf-8"><title>{html.escape(dispatcher.service)}</title>
<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}}
textarea,pre,input{{width:100%;box-sizing:border-box;font:13px monospace}}
pre{{background:#8881;padding:.7rem;overflow:auto}}
:root{{color-scheme:light dark}}</style>
<h1>{html.escape(dispatcher.service)}</h1><p>{html.escape(description)}</p>
<form id="f"><label>Key (if required) <input id="k" type="password" autocomplete="off"></label>
<label>POST /score <textarea id="b" rows="10">{html.escape(sample)}</textarea></label>
<p><button>Send</button></p></form><pre id="a" role="status">no request yet</pre>
<h2>Description</h2><p><a href="swagger.json">swagger.json</a></p>
<pre>{html.escape(json.dumps(dispatcher.openapi, indent=1))}</pre>
<script>f.onsubmit=async e=>{{e.preventDefault();const h={{"content-type":"application/json"}};
if(k.value)h.authorization="Bearer "+k.value;const t=performance.now();
const r=await fetch("score",{{method:"POST",headers:h,body:b.value}});
const id=r.headers.get("x-request-id");
a.textContent=r.status+" in "+(performance.now()-t).toFixed(1)+" ms, request "+id+"\\n"+await r.text()}}</script>
"""
