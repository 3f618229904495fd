"""Status numbers that every request is compared with (RFC 9110 section 15).

Elsewhere the members of `http.HTTPStatus` are used; each look-up of one takes Python 3.11 some 130 ns.
"""

SWITCHING_PROTOCOLS = 101
OK = 200
BAD_REQUEST = 400
TOO_MANY_REQUESTS = 429
INTERNAL_SERVER_ERROR = 500
