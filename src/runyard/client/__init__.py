"""HTTP client of the yard: HTTP over its unix socket, with the standard library only.

Training scripts load this package into users' Python environments, so it cannot depend on an HTTP library.
"""
