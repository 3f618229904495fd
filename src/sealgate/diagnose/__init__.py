"""The questions of `check`, `discover` and `keys`, and the conclusions from the answers.

Pure:
causes   why the exchange refused a signed read: the table of causes
reads    the lines of a check on the replies to reads
logins   the lines of a check on logins on streams
vetting  the bounds within which a clock, a certificate, a disk is fine
running  the lines of a check on a running gateway's status
schemes  the search for the signature scheme that an exchange accepts

Shell:
check        the probes of `check`, in order
local        this machine: files, secrets, addresses, the journal
network      DNS, TLS, Redis
exchange     the time, the keys, one signed read of each
streams      logs in on a stream with a key
probe        sends the reads, without the gateway's queue
key_reading  reads the lists of keys
arguments    the arguments of a command, checked
"""
