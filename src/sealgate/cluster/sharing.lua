-- The gateways that share one key: which are there, which one leads, until when all pause.
--
-- One heartbeat of one gateway, as one atomic step on the clock of Redis: the clocks of the gateways differ.
-- All keys and channels carry the same {tag}, so that Redis Cluster keeps them on one node.
--
-- KEYS[1]  hash: lead, lead_until, epoch, pause_until (times in µs), beat (the leader's last announcement, JSON)
-- KEYS[2]  sorted set: members, by the end of their leases in µs
-- ARGV[1]  now in µs; "" is the time of Redis (tests bring their own)
-- ARGV[2]  the gateway's name     ARGV[3]  the epoch that it knows, 0 for none
-- ARGV[4]  its lease in µs; 0: it leaves
-- ARGV[5]  the leader's lease in µs
-- ARGV[6]  the rest of a pause that it knows, in µs
-- ARGV[7]  the longest pause that there can be, in µs
-- ARGV[8]  a message for the leader, or ""
-- ARGV[9]  the leader's announcement for all, or ""
-- ARGV[10…] pairs of member and message, from the leader
--
-- Returns {leader, epoch, rest of the pause in µs, number of members, announcement, names of the members}: the
-- announcement only to a gateway of another epoch, the names only to the leader.

local state, members = KEYS[1], KEYS[2]
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
  return {lead, epoch, 0, redis.call('ZCARD', members), '', {}}
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

-- A pause is never shortened, and all are told at once.
local pause_until = read('pause_until')
if pause_until > now + tonumber(ARGV[7]) then pause_until = 0 end
if now + tonumber(ARGV[6]) > math.max(now, pause_until) then
  pause_until = now + tonumber(ARGV[6])
  redis.call('HSET', state, 'pause_until', number(pause_until))
  tell('all', '{"pause":' .. ARGV[6] / 1000000 .. '}')
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

return {
  lead,
  epoch,
  math.max(0, pause_until - now),
  redis.call('ZCARD', members),
  known ~= epoch and redis.call('HGET', state, 'beat') or '',
  is_lead and redis.call('ZRANGE', members, 0, -1) or {},
}
