"""The pacing of an exchange: which request may be sent when, under stated or learned rate limits.

Pure:
pacer         one pacer for all requests to an exchange: enter, release, sent, answered
pools         the pools of an exchange, and blocked keys or addresses
pool          what the exchange counts together: gate, scout, pace, and what was learned
membership    which pools a request passes
relay         what a pacer reports, and is told, where several gateways share the limit
wait_queue    the queue of all that wait
line_sizes    how many wait, by key and bot
turns         whose turn it is in a pool: lanes by rank, bots by fair queueing
lane_queues   the queues of one lane
gate          closed after a 429 until the pause is over
firewall      refusals by a firewall in front of the exchange
rejections    why a claim is not sent, in words
claims        what goes into the pacing, and what comes out
estimator     learns the limits of a pool; its docstring has the rules
fit           the limiter that explains the refusals
observations  what windows of any length held at a refusal
in_flight     what is in flight, and how much was at a time
limit         the belief about one limit
throttle      a 429 and what follows it until the limiter accepts again
sent_log      what was sent and not refused
round_trips   the jitter of the round trip
quotas        limits that are stated
counts        what replies state to be left of them
limit_reply   what a reply says about the limit
snapshots     limits as plain values
status        what there is to see of it

Shell:
scheduler  where requests wait for their turn at the limit; all waits in order: request/pipeline
"""

from sealgate.limits.estimator import LimitEstimator, Step
from sealgate.limits.limit import ALL, OTHERS, READS, Limit, Weights

__all__ = ["ALL", "OTHERS", "READS", "Limit", "LimitEstimator", "Step", "Weights"]
