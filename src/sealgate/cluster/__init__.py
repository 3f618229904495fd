"""The limits of an exchange over several gateways: they elect a leader through Redis, which paces them all.

Pure:
messages  what gateways tell each other, and how it is written
leader    the pacer of all gateways, where one of them leads
relay     what one gateway's pacer reports to the leader, and what the leader decided for it
member    who leads, what to send and when, what to do without Redis

Shell:
redis_group  speaks with Redis; imported only where `limits.redis` is set
"""
