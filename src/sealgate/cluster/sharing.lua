-- The gateways that share the limits of one exchange: which are there, which one leads, until when what pauses.
--
-- One heartbeat of one gateway, as one atomic step on the clock of Redis: the clocks of the gateways differ.
-- All keys and channels carry the same {tag}, so that Redis Cluster keeps them on one node.
--
-- KEYS[1]  hash: lead, lead_until, epoch (times in µs), beat (the leader's last announcement, JSON)
-- KEYS[2]  sorted set: members, by the end of their leases in µs
-- KEYS[3]  sorted set: the places of pools that pause, by the end of the pause in µs
-- ARGV[1]  now in µs; "" is the time of Redis (tests bring their own)
-- ARGV[2]  the gateway's name     ARGV[3]  the epoch that it knows, 0 for none
-- ARGV[4]  its lease in µs; 0: it leaves
-- ARGV[5]  the leader's lease in µs
-- ARGV[6]  what is left of pauses that it knows: JSON, from place to µs
-- ARGV[7]  the longest pause that there can be, in µs
-- ARGV[8]  a message for the leader, or ""
-- ARGV[9]  the leader's announcement for all, or ""
-- ARGV[10…] pairs of member and message, from the leader
--
-- Returns {leader, epoch, pairs of place and what is left of its pause in µs, number of members, announcement, names
-- of the members}: the announcement only to a gateway of another epoch, the names only to the leader.

local MOST_PAUSES = 1000 -- those that end last; whoever can write here chooses how many there are
local state, members, pauses = KEYS[1], KEYS[2], KEYS[3]
local me, known, lease = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local function number(value) return string.format('%.0f', value) end
local function tell(channel, message) redis.call('PUBLISH', KEYS[1] .. ':' .. channel, message) end

-- What is no time was written by a stranger. It counts as nothing, or it would outlive whoever wrote it.
local function read(field)
  local value = tonumber(redis.call('HGET', state, field) or 0)
  if value and value >= 0 and value < 2^53 then return value end
  return 0
end

-- Leases that have run out are nobody's, nor those that no gateway takes.
redis.call('ZREMRANGEBYSCORE', members, '-inf', number(now))
if lease > 0 then redis.call('ZREMRANGEBYSCORE', members, '(' .. number(now + lease), '+inf') end
local lead = redis.call('HGET', state, 'lead') or ''
local epoch = read('epoch')

if lease == 0 then
  redis.call('ZREM', members, me)
  if lead == me then
    redis.call('HDEL', state, 'lead')
    lead = ''
    -- The first gateway that sends a heartbeat after this is the next leader.
    tell('all', '{"epoch":' .. number(epoch + 1) .. '}')
  end
  return {lead, epoch, {}, redis.call('ZCARD', members), '', {}}
end
redis.call('ZADD', members, number(now + lease), me)

-- A leader that does not know its own epoch has lost all that it knew: it begins anew, as any other would.
local lead_until = read('lead_until')
local is_vacant = lead == '' or lead_until <= now or lead_until > now + tonumber(ARGV[5])
if is_vacant or (lead == me and known ~= epoch) then
  lead = me
  epoch = math.max(now, epoch + 1)
  redis.call('HSET', state, 'lead', me, 'epoch', number(epoch))
  tell('all', '{"epoch":' .. number(epoch) .. '}')
end

local is_lead = lead == me and known == epoch
if lead == me then
  redis.call('HSET', state, 'lead_until', number(now + tonumber(ARGV[5])))
end

-- A pause is never shortened, and all are told at once. One that is longer than there can be was made up.
redis.call('ZREMRANGEBYSCORE', pauses, '-inf', number(now))
redis.call('ZREMRANGEBYSCORE', pauses, '(' .. number(now + tonumber(ARGV[7])), '+inf')
local new = {}
for place, left in pairs(cjson.decode(ARGV[6])) do
  if now + left > tonumber(redis.call('ZSCORE', pauses, place) or now) then
    redis.call('ZADD', pauses, number(now + left), place)
    new[place] = left / 1000000
  end
end
if next(new) then
  redis.call('ZREMRANGEBYRANK', pauses, 0, -1 - MOST_PAUSES)
  tell('all', '{"pauses":' .. cjson.encode(new) .. '}')
end

if ARGV[8] ~= '' and known == epoch then tell(lead, ARGV[8]) end
if is_lead then
  if ARGV[9] ~= '' then
    redis.call('HSET', state, 'beat', ARGV[9])
    tell('all', ARGV[9])
  end
  for at = 10, #ARGV, 2 do tell(ARGV[at], ARGV[at + 1]) end
end

-- What gets no heartbeat any more is forgotten, once no pause and no limit can matter.
redis.call('PEXPIRE', state, 7200000)
redis.call('PEXPIRE', members, 7200000)
redis.call('PEXPIRE', pauses, 7200000)

local paused = {}
local rows = redis.call('ZRANGE', pauses, 0, -1, 'WITHSCORES')
for at = 1, #rows, 2 do paused[#paused + 1] = {rows[at], rows[at + 1] - now} end

return {
  lead,
  epoch,
  paused,
  redis.call('ZCARD', members),
  known ~= epoch and redis.call('HGET', state, 'beat') or '',
  is_lead and redis.call('ZRANGE', members, 0, -1) or {},
}
