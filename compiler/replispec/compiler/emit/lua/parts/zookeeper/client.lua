-- ---- clients and servers -------------------------------------------------------------------------

local ZK, ZK_MALFORMED = new_protocol("zookeeper")
local ZK_STREAMS = SPECIFICATION.streams
local ZK_EXCHANGE = SPECIFICATION.exchanges.ReplyFrame
-- By TCP stream: the client, as `sender` names it, and the packet with the first frame of each direction. By
-- packet and place: what a request was read as, so that later passes see the same.
local CLIENTS, OPENINGS, ASKED, WAITING_REQUESTS, WORDS = {}, {}, {}, {}, {}

local function code_name(code)
  return name_of("OpCode", code)
end

-- Whether the bytes are the first frame of a client: a word, or a question for a session that fills its frame.
local function opens_client(frame, limit)
  local form = select(2, measure({forms = ZK_STREAMS.REQUESTS.first}, frame.data, 0, limit))
  if not form then
    return nil
  end
  local message, following = read_message(frame, SPECIFICATION.messages[form.message], 0, limit)
  if not message then
    return nil
  elseif form.message == "AdminWordFrame" then
    return SPECIFICATION.enums.AdminWord[message.values.word] and limit == following and form or nil
  end
  local is_sound = message.values.protocol_version == 0 and message.values.timeout >= 0
  return is_sound and following == message.values.size + 4 and form or nil
end

local function opening_key(pinfo)
  return stream_number() .. " " .. sender(pinfo)
end

-- Whether the frame at byte `at` is the first one of its direction.
local function is_first(frame, at, message)
  local key, number = opening_key(frame.pinfo), frame.pinfo.number
  if at == 0 and not OPENINGS[key] then
    local part, following = read_message(frame, SPECIFICATION.messages[message], at, frame.tvb:len())
    local sound = part and part.values.protocol_version == 0 and following == at + part.values.size + 4
    OPENINGS[key] = sound and number or -1
  end
  return at == 0 and OPENINGS[key] == number
end

local function show_body(frame, tree, name, body)
  show_generated(tree, "zookeeper.message", name)
  tree:append_text(", " .. name)
  local message, following =
    read_message(frame, SPECIFICATION.messages[name], body.content_at, body.content_at + body.content_size)
  if not message then
    show_fault(tree, ZK_MALFORMED, following)
  elseif following ~= body.content_at + body.content_size then
    show_fault(tree, ZK_MALFORMED, "bytes are left over")
  else
    for _, part in ipairs(message.parts) do
      show_part(frame, tree, part)
    end
  end
end

local function waiting_of(number)
  local waiting = WAITING_REQUESTS[number] or {first = 1, last = 0, apart = {}}
  WAITING_REQUESTS[number] = waiting
  return waiting
end

-- Remember a request; and find the request of an answer, in the order of requests.
local function asked(frame, xid, code)
  local waiting = waiting_of(stream_number())
  local request = {xid = xid, code = code, packet = frame.pinfo.number, at = frame.pinfo.rel_ts}
  if ZK_EXCHANGE.numbers[xid] then
    waiting.apart[xid] = request
  else
    waiting.last = waiting.last + 1
    waiting[waiting.last] = request
  end
  return request
end

local function answered(xid)
  local waiting = waiting_of(stream_number())
  if ZK_EXCHANGE.numbers[xid] then
    return waiting.apart[xid] or {xid = xid, code = ZK_EXCHANGE.numbers[xid]}
  end
  for place = waiting.first, waiting.last do
    if waiting[place].xid == xid then
      for passed = waiting.first, place - 1 do
        waiting[passed] = nil
      end
      local request = waiting[place]
      waiting[place], waiting.first = nil, place + 1
      return request
    end
  end
  return nil
end

-- The request that a frame is, or answers; found in the first pass.
local function exchange_at(frame, at, find)
  local key = frame.pinfo.number .. " " .. at .. " " .. sender(frame.pinfo)
  if ASKED[key] == nil then
    ASKED[key] = find() or false
  end
  return ASKED[key] or nil
end

local function show_times(frame, tree, request, is_answer)
  if is_answer and request.packet then
    request.answer = frame.pinfo.number
    show_generated(tree, "zookeeper.request_in", request.packet)
  elseif not is_answer and request.answer then
    show_generated(tree, "zookeeper.response_in", request.answer)
  end
end

local function show_opening(frame, tree, name, at, limit)
  local message, fault = read_message(frame, SPECIFICATION.messages[name], at, limit)
  tree:append_text(", " .. name)
  describe(frame, "ZooKeeper", name)
  show_generated(tree, "zookeeper.message", name)
  if not message then
    show_fault(tree, ZK_MALFORMED, fault)
    return
  end
  for _, part in ipairs(message.parts) do
    show_part(frame, tree, part)
  end
end

local function show_request(frame, form, at, limit, tree)
  if is_first(frame, at, "ConnectRequest") then
    show_opening(frame, tree, "ConnectRequest", at, limit)
    return
  end
  local message, fault = read_message(frame, SPECIFICATION.messages[form.message], at, limit)
  if not message then
    show_fault(tree, ZK_MALFORMED, fault)
    return
  end
  local xid, code = message.values.xid, message.values[ZK_EXCHANGE.code]
  local request = exchange_at(frame, at, function() return asked(frame, xid, code) end)
  describe(frame, "ZooKeeper", string.format("request %s, xid %d", code_name(code), xid))
  for _, part in ipairs(message.parts) do
    if part ~= message.body then
      show_part(frame, tree, part)
    end
  end
  show_times(frame, tree, request, false)
  local known = ZK_EXCHANGE.forms[code]
  if known and known.request then
    show_body(frame, tree, known.request, message.body)
  end
end

local function show_reply(frame, form, at, limit, tree)
  if is_first(frame, at, "ConnectResponse") then
    show_opening(frame, tree, "ConnectResponse", at, limit)
    return
  end
  local message, fault = read_message(frame, SPECIFICATION.messages[form.message], at, limit)
  if not message then
    show_fault(tree, ZK_MALFORMED, fault)
    return
  end
  local xid, failed = message.values.xid, message.values[ZK_EXCHANGE.failed]
  for _, part in ipairs(message.parts) do
    if part ~= message.body then
      show_part(frame, tree, part)
    end
  end
  if ZK_EXCHANGE.unasked[xid] then
    describe(frame, "ZooKeeper", "notification")
    show_body(frame, tree, ZK_EXCHANGE.unasked[xid], message.body)
    return
  end
  local request = exchange_at(frame, at, function() return answered(xid) end)
  local what = request and code_name(request.code) or "to an unseen request"
  local how = failed ~= 0 and ", " .. name_of("ErrorCode", failed) or ""
  describe(frame, "ZooKeeper", string.format("answer %s, xid %d%s", what, xid, how))
  if not request then
    return
  end
  show_generated(tree, "zookeeper.request_code", request.code)
  show_times(frame, tree, request, true)
  local known = ZK_EXCHANGE.forms[request.code]
  if failed == 0 and known and known.answer then
    show_body(frame, tree, known.answer, message.body)
  end
end

local function dissect_word(tvb, pinfo, tree)
  local frame = {tvb = tvb, data = tvb:raw(), pinfo = pinfo}
  local item = tree:add(ZK, tvb())
  if CLIENTS[stream_number()] == sender(pinfo) then
    show_opening(frame, item, "AdminWordFrame", 0, tvb:len())
  else
    describe(frame, "ZooKeeper", "answer to a word")
    show_generated(item, "zookeeper.text", clean(frame.data))
  end
  return tvb:len()
end

local function dissect_zookeeper(tvb, pinfo, tree)
  local number = stream_number()
  if not CLIENTS[number] then
    local frame = {tvb = tvb, data = tvb:raw(), pinfo = pinfo}
    local form = opens_client(frame, tvb:len())
    local to_server = in_ranges(pinfo.dst_port, ranges(ZK.prefs.ports))
    CLIENTS[number] = (form or to_server) and sender(pinfo) or receiver(pinfo)
    WORDS[number] = form and form.message == "AdminWordFrame" or nil
  end
  if WORDS[number] then
    return dissect_word(tvb, pinfo, tree)
  elseif CLIENTS[number] == sender(pinfo) then
    return dissect_frames(ZK, ZK_MALFORMED, ZK_STREAMS.REQUESTS, tvb, pinfo, tree, show_request)
  end
  return dissect_frames(ZK, ZK_MALFORMED, ZK_STREAMS.ANSWERS, tvb, pinfo, tree, show_reply)
end

ZK.dissector = dissect_zookeeper
ZK.prefs.ports = Pref.range("TCP ports", "", "Ports of servers; 2181 where nobody chooses another", 65535)
local zookeeper_ports = ""

function ZK.prefs_changed()
  zookeeper_ports = take_ports(ZK, zookeeper_ports, ZK.prefs.ports)
end

function ZK.init()
  CLIENTS, OPENINGS, ASKED, WAITING_REQUESTS, WORDS = {}, {}, {}, {}, {}
end

DissectorTable.get("tcp.port"):add_for_decode_as(ZK)
ZK:register_heuristic("tcp", function(tvb, pinfo, tree)
  local frame = {tvb = tvb, data = tvb:raw(), pinfo = pinfo}
  if not CLIENTS[stream_number()] and not opens_client(frame, tvb:len()) then
    return false
  end
  pinfo.conversation = ZK
  dissect_zookeeper(tvb, pinfo, tree)
  return true
end)
