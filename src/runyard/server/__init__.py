"""The yard's HTTP API. A route parses the request, calls one component and builds the response, without logic."""
