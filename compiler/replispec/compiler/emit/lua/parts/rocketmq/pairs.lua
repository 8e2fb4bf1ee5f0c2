-- ---- requests and their answers ------------------------------------------------------------------
-- A request waits under its stream, its sender and its opaque; the answer takes it. What was found in the
-- first pass is kept by packet, so that later passes, in any order, see the same.

local WAITING, EXCHANGES = {}, {}

local function reset_exchanges()
  WAITING, EXCHANGES = {}, {}
end

local function exchange_key(pinfo, opaque, is_answer)
  return string.format("%d %d %s", pinfo.number, opaque, is_answer and "answer" or "request")
end

local function waiting_key(stream, who, opaque)
  return string.format("%d %s %d", stream, who, opaque)
end

-- The exchange that this command belongs to: {code, request, asked, answer, answered}; packet numbers,
-- and times in seconds. nil for an answer whose request was not seen.
local function exchange_of(pinfo, command)
  local key = exchange_key(pinfo, command.opaque, command.is_answer)
  if pinfo.visited then
    return EXCHANGES[key]
  end
  local stream = stream_number()
  if not command.is_answer then
    local exchange = {code = command.code, request = pinfo.number, asked = pinfo.rel_ts}
    EXCHANGES[key] = exchange
    if not command.is_oneway then
      WAITING[waiting_key(stream, sender(pinfo), command.opaque)] = exchange
    end
    return exchange
  end
  local place = waiting_key(stream, receiver(pinfo), command.opaque)
  local exchange = WAITING[place]
  if exchange then
    WAITING[place] = nil
    exchange.answer, exchange.answered = pinfo.number, pinfo.rel_ts
    EXCHANGES[key] = exchange
  end
  return exchange
end

-- Packets that are seen again before the first pass is over keep what they found.
local function known_exchange(pinfo, command)
  return EXCHANGES[exchange_key(pinfo, command.opaque, command.is_answer)] or exchange_of(pinfo, command)
end

local function duration(seconds)
  local whole = math.floor(seconds)
  return NSTime.new(whole, math.floor((seconds - whole) * 1e9 + 0.5))
end

local function show_exchange(tree, command, exchange)
  if command.is_answer then
    show_generated(tree, "rocketmq.request_code", exchange.code)
    show_generated(tree, "rocketmq.request_in", exchange.request)
    show_generated(tree, "rocketmq.response_time", duration(exchange.answered - exchange.asked))
  elseif exchange.answer then
    show_generated(tree, "rocketmq.response_in", exchange.answer)
  end
end
