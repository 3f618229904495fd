"""The path of one request: `pipeline` is its plan, `context` its record.

Pure:
admission  which bot sends a request, and whether the rules admit it
strangers  the delay of replies to wrong tokens

Shell:
handler       serves one request from its head to its record
router        chooses the exchange of a request
pipeline      admit, read, recall, check, wait, send, learn, reply
sender        one attempt: stamp, record, sign, send
standing      whether it may be sent now: halts, firewalls, refused keys
checks        checks that only some requests need: policy, validity
context       the requests in flight, and their records
bots          bots' connections, and the bodies read from them
bookkeeping   Idempotency-Keys, and orders in the journal
halting       halts orders and lifts halts
shared_reads  one reply for identical reads
learning      lets pacer and clock learn from an attempt
replies       the reply to the bot
stream_addresses  replaces addresses of streams in replies by the gateway's own
rules         from the configuration to the rules of admission
generation    a Backend is one exchange with its settings and rules; a reload replaces all of them
own_reads     sends the gateway's own reads
key_care      tests keys
price_care    reads prices for policies
"""
