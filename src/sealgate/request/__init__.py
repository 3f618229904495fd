"""The way of one request: `pipeline` is its plan, `context` its record.

Pure:
admission  who asks, and whether the rules let it through
strangers  how long the answer to a wrong token is held back

Shell:
handler       serves one request from its head to its record
router        which exchange it is for
pipeline      admit, read, recall, check, wait, send, learn, reply
sender        one attempt: stamp, record, sign, send
standing      may it be sent? halts, firewalls, refused keys
checks        what only some requests are looked at for: policy, validity
context       what is in flight, and all that is known of it
bots          a bot's connection, and what is read from it
bookkeeping   Idempotency-Keys, and orders in the journal
halting       stops orders and lets them go again
shared_reads  one reply for identical reads
learning      what an attempt teaches pacer and clock
replies       the reply to the bot
stream_addresses  addresses of streams in a reply, made the gateway's own
rules         from the configuration to the rules of admission
generation    a Backend is one exchange with its settings and rules; all of them are replaced by a reload
own_reads     reads that the gateway sends itself
key_care      tries keys
price_care    reads prices for policies
"""
