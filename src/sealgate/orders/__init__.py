"""Orders: never twice, never beyond the policy, never forgotten.

Pure:
resends      may it be sent again? the one table
outcome      what became of a request: the record that all readers get
idempotency  what was answered to an `Idempotency-Key`
doubts       orders that were sent and whose end is unknown
halts        which orders are stopped, until a person resumes them
policy       what the orders of a bot may be
prices       the last prices of an exchange, for policies
price_reads  which prices the gateway reads itself for policies
validity     X-Gateway-Valid-Ms, which an order's timestamp enforces

Shell:
journal  what must outlive the process, in one SQLite file
"""
