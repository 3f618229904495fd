"""Orders: never twice, never beyond the policy, never forgotten.

Pure:
resends      the one table that decides whether a request is resent
outcome      the outcome of a request: the record for all readers
idempotency  the replies to each `Idempotency-Key`
doubts       orders that were sent and whose result is unknown
halts        orders that are halted until a person lifts the halt
policy       the rules for a bot's orders
prices       an exchange's last prices, for policies
price_reads  the prices that the gateway reads itself for policies
validity     X-Gateway-Valid-Ms, enforced through an order's timestamp

Shell:
journal  the records that survive the process, in one SQLite file
"""
