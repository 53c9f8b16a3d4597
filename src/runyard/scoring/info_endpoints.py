"""What a service says about itself: whether it is well, what it takes, what it has counted."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING

from runyard.scoring import counters
from runyard.scoring.responses import Answer, problem

if TYPE_CHECKING:
    from runyard.scoring.dispatcher import Desk
    from runyard.scoring.request_head import Head

OPEN = frozenset({"/", "/healthz", "/swagger.json", "/openapi.json", "/docs"})  # a key is not needed
_READ = ("GET", "HEAD")


def answer(desk: Desk, head: Head, request_id: str) -> Answer:
    path = head.path
    if path not in OPEN and path != "/metrics":
        return problem(404, f"there is nothing at {path[:200]}: requests go to /score", request_id)
    if head.method not in _READ:
        return not_allowed(head.method, _READ, request_id)
    if path == "/":
        return Answer(200, b"Healthy", "text/plain; charset=utf-8")
    if path == "/healthz":
        return Answer(200, json.dumps({"status": "Healthy", "service": desk.service, "version": desk.version}).encode())
    if path == "/metrics":
        text = counters.prometheus(desk.service, desk.folder.counts)
        return Answer(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")
    if path == "/docs":
        return Answer(200, _page(desk).encode(), "text/html; charset=utf-8")
    return Answer(200, json.dumps(desk.openapi).encode())


def not_allowed(method: str, allowed: tuple[str, ...], request_id: str) -> Answer:
    said = problem(405, f"{method} cannot be done here, but {' and '.join(allowed)}", request_id)
    return said._replace(headers=f"allow: {', '.join(allowed)}\r\n")


def _page(desk: Desk) -> str:
    """For people: the description, and a form to try it."""
    described = desk.openapi.get("components", {}).get("schemas", {}).get("ServiceInput", {})
    sample = json.dumps(described.get("example", {}), indent=1)
    return f"""<!doctype html><meta charset="utf-8"><title>{html.escape(desk.service)}</title>
<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}}
textarea,pre,input{{width:100%;box-sizing:border-box;font:13px monospace}}
pre{{background:#8881;padding:.7rem;overflow:auto}}
:root{{color-scheme:light dark}}</style>
<h1>{html.escape(desk.service)}</h1><p>{html.escape(desk.openapi.get("info", {}).get("description", ""))}</p>
<form id="f"><label>Key, if it asks for one <input id="k" type="password" autocomplete="off"></label>
<label>POST /score <textarea id="b" rows="10">{html.escape(sample)}</textarea></label>
<p><button>Send</button></p></form><pre id="a" role="status">no request yet</pre>
<h2>Description</h2><p><a href="swagger.json">swagger.json</a></p>
<pre>{html.escape(json.dumps(desk.openapi, indent=1))}</pre>
<script>f.onsubmit=async e=>{{e.preventDefault();const h={{"content-type":"application/json"}};
if(k.value)h.authorization="Bearer "+k.value;const t=performance.now();
const r=await fetch("score",{{method:"POST",headers:h,body:b.value}});
const id=r.headers.get("x-request-id");
a.textContent=r.status+" in "+(performance.now()-t).toFixed(1)+" ms, request "+id+"\\n"+await r.text()}}</script>
"""
