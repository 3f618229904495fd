"""What an exchange is, as data: a TOML file each in `files/`. The code knows their grammar and no exchange.

Pure:
venue           a whole file, read once
key_kinds       the kinds of keys, and what signs
document        a file as tables read key by key, with errors
like            a file that starts from another one
environments    hosts and headers of test networks
templates       literal bytes and `{name|filter}`
filters         what a value is put through
encodings       how times, nonces and signatures are written
conditions      what must stand at which places of a JSON document
json_texts      JSON that a file describes
json_edit       a JSON text changed at places
json_bytes      members of a JSON text, by the bytes where they stand
scheme          how requests are signed
sealer          signs with one key
streams         the streams of an exchange, and what their messages need
stream_grammar  what a file says of them
stream_sealer   signs on a stream with one key
stream_logins   logins made of a file alone
unsignable      what cannot be signed
routes          what a method and a path need, and their lane
replies         what a reply means
error_shapes    how an exchange states errors, for the gateway's own replies
limit_rules     how requests are counted
order_terms     symbol, size and price out of an order
own_parameters  parameters that only the gateway sets
outward         words of paths that lead money or keys out
server_time     the time out of a reply
letters         names in other spellings
"""
