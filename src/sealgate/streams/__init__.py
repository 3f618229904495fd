"""WebSockets: a stream's life, who may send what over it, and the orders among its messages.

A stream is opened by the same admission as a request. What the exchange sends is passed on as it comes; what
a bot sends is read where the venue's file has rules for it. An order over a stream is a request: it has the
same record, and passes the same halts, policies, pools and journal.

Pure:
access        which stream a bot asks for, and what a message of its needs
login         a login that was sent, until something answers it
own_token     a bot's token, looked for in what it sends
openings      how many streams may be opened in a time
tally         what is counted of streams

Shell:
opening       from the upgrade to the open stream
life          an open stream: both directions, and its end
conversation  what is said over it: what each message is, and what answers it
signing       at what moment a message is signed, and with which nonce
orders        an order over a stream, from its turn in line to the reply that settles it
registry      the streams that are open: draining, reload, status
"""
