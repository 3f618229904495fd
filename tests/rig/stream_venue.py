"""A venue of the tests' own that has streams, in each way that a file can describe."""

HOST = "stream.lab.example"
VENUE = f"""
name = "lab"
title = "Lab"
[signing]
message = "{{timestamp}}{{method}}{{path}}"
[signing.headers]
X-LAB-KEY = "{{api_key}}"
X-LAB-SIGN = "{{signature}}"
X-LAB-TIME = "{{timestamp}}"
[clock]
path = "/time"
[[limits.pools]]
name = "orders"
lanes = ["order"]
[[limits.pools]]
name = "other"
lanes = ["read", "cancel"]
[[routes]]
match = "GET /time"
auth = "open"
[[replies]]
at = "/error"
is = ["no such key"]
kind = "no_key"
means = "key"
[[replies]]
at = "/error"
is = ["too old"]
kind = "too_old"
means = "timestamp"

[[streams]]
host = ["{HOST}", "other.lab.example:8443"]
paths = ["/private", "/"]
[[streams.messages]]
when = {{ "/op" = "login", "/arms" = "*" }}
needs = "trade"
login = true
signs = "{{timestamp}}LOGIN{{host}}"
puts = {{ "/key" = "{{api_key}}", "/time" = "{{timestamp}}", "/sign" = "{{signature}}" }}
reply = {{ when = {{ "/op" = "login" }}, done = {{ "/ok" = true }} }}
[[streams.messages]]
when = {{ "/op" = "login" }}
login = true
signs = "{{timestamp}}LOGIN{{host}}"
puts = {{ "/key" = "{{api_key}}", "/time" = "{{timestamp}}", "/sign" = "{{signature}}" }}
drops = ["/url"]
reply = {{ when = {{ "/op" = "login" }}, done = {{ "/ok" = true }} }}
[[streams.messages]]
when = {{ "/op" = ["subscribe", "ping"] }}
[[streams.messages]]
when = {{ "" = "ping" }}
[[streams.messages]]
when = {{ "/op" = "basic" }}
refuses = "it has the secret in it; use login"
[[streams.messages]]
when = {{ "/op" = "order.place" }}
lane = "order"
order = {{ symbol = "/args/symbol", size = "/args/size" }}
[[streams.messages]]
when = {{ "/op" = "order.blind" }}
lane = "order"
[[streams.messages]]
when = {{ "/op" = "order.signed" }}
lane = "order"
signs = "{{timestamp}}{{/args/symbol}}"
puts = {{ "/time" = "{{timestamp}}", "/sign" = "{{signature}}" }}
[[streams.messages]]
when = {{ "/op" = "order.cancel" }}
lane = "cancel"
[[streams.messages]]
when = {{ "/op" = "withdraw" }}
needs = "keys"
[streams.reply]
id = "/id"
done = {{ "/status" = 200 }}
limited = {{ "/status" = 429 }}
wait = "/wait as in_s"
status = "/status"
refused = {{ "/status" = [400, 404] }}
unknown = {{ "/status" = 500 }}

[[streams]]
host = "{HOST}"
paths = ["/signed/{{account}}"]
[streams.handshake]
signs = "{{timestamp}}{{path}}"
headers = {{ X-LAB-KEY = "{{api_key}}", X-LAB-SIGN = "{{signature}}", X-LAB-TIME = "{{timestamp}}" }}
query = {{ key = "{{api_key}}" }}
path = "/signed/{{uid}}"

[[streams]]
host = "{HOST}"
paths = ["/challenge"]
[[streams.messages]]
when = {{ "/op" = "challenge" }}
puts = {{ "/key" = "{{api_key}}" }}
[[streams.messages]]
when = {{ "/op" = "subscribe" }}
signs = "{{challenge}}"
puts = {{ "/sign" = "{{signature}}" }}
[streams.challenge]
when = {{ "/op" = "challenge" }}
at = "/text"

[[streams]]
host = "{HOST}"
paths = ["/public/**", "/ws/{{key}}"]
"""
