"""The way of one request: `pipeline` is its plan, `context` its record.

Pure:
admission     who asks, and whether the rules let it through
key_health    what replies say of a key, and when it is tried again
recent_reads  reads whose replies answer identical ones
sealing       the signed bytes of one attempt

Shell:
handler       serves one request from its head to its record
pipeline      admit, read, wait, stamp and sign, send, learn, reply
context       what is in flight, and all that is known of it
bots          a bot's connection, and what is read from it
bookkeeping   Idempotency-Keys, and orders in the journal
halting       stops orders and lets them go again
key_breaker   refuses requests while a key is not accepted
shared_reads  one reply for identical reads
learning      what an attempt teaches pacer and clock
replies       the reply to the bot
rules         from the configuration to the rules of admission
generation    all that one configuration makes of the parts
key_care      the gateway's own signed reads
price_care    its reads of prices
"""
