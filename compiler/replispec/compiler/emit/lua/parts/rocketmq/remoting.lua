-- ---- remoting commands ---------------------------------------------------------------------------

local REMOTING, REMOTING_MALFORMED = new_protocol("rocketmq")
local REMOTING_STREAM = SPECIFICATION.streams.REMOTING
local REMOTING_FRAME = SPECIFICATION.messages.RemotingFrame
local LINES_MAXIMUM = 1000

local function has_bit(flag, name)
  return masked(flag, number_of("RemotingFlag", name)) > 0
end

-- What a header says, with the code's name; absent numbers are 0, as every reader takes them.
local function command_of(header)
  local values = header.values
  local flag = values.flag or 0
  local command = {code = values.code or 0, opaque = values.opaque or 0, flag = flag}
  command.is_answer = has_bit(flag, "RESPONSE")
  command.is_oneway = has_bit(flag, "ONEWAY")
  command.name = name_of(command.is_answer and "ResponseCode" or "RequestCode", command.code)
  return command
end

local function message_of(command, exchange)
  if not command.is_answer then
    return SPECIFICATION.requests[command.code], SPECIFICATION.request_bodies[command.code]
  elseif exchange then
    return SPECIFICATION.answers[exchange.code], SPECIFICATION.answer_bodies[exchange.code]
  end
  return nil
end

local function show_lines(frame, tree, part)
  local at, limit = part.content_at, part.content_at + part.content_size
  for _ = 1, LINES_MAXIMUM do
    local first, last = frame.data:find("[^\r\n]+", at + 1)
    if not first or first > limit then
      return
    end
    last = math.min(last, limit)
    local range = frame.tvb(first - 1, last - first + 1)
    tree:add(FIELDS["rocketmq.line"], range, clean(frame.data:sub(first, last)))
    at = last
  end
end

-- Show the body: as JSON, as lines when the specification says so, as records of the commit log.
local function show_body(frame, tree, part, command, body)
  if part.content_size == 0 then
    return
  end
  local at, limit = part.content_at, part.content_at + part.content_size
  local item = tree:add(FIELDS[part.field.filter], frame.tvb(at, part.content_size))
  item:set_text(string.format("Body: %s%d bytes", body and body.message .. ", " or "", part.content_size))
  show_generated(tree, "rocketmq.body_size", part.content_size)
  if command.is_answer and log_starts(frame.data, at, limit) then
    dissect_log(frame, at, limit, item)
  elseif body and body.layout == "TEXT" then
    show_lines(frame, item, part)
  elseif is_wanted(tree, "rocketmq.json") and frame.data:find("^[{%[]", at + 1) then
    local node = parse_json(frame.data, at, limit)
    if node then
      show_json(frame, item, "rocketmq.json", node)
    end
  end
end

local function show_header(frame, tree, header, part, message)
  local item = tree:add(FIELDS[part.field.filter], frame.tvb(part.content_at, part.content_size))
  item:set_text(string.format("Header: %d bytes", part.content_size))
  for _, each in ipairs(header.parts) do
    if each.field.type == "map" then
      show_entries(frame, item, each, message)
    elseif each.value ~= "" then
      show_part(frame, item, each)
    end
  end
  for _, member in ipairs(header.others or {}) do
    show_json(frame, item, "rocketmq.json", member.node, clean(member.key or ""))
  end
end

local function show_command(frame, form, at, limit, tree)
  local message, fault = read_message(frame, REMOTING_FRAME, at, limit)
  if not message then
    show_fault(tree, REMOTING_MALFORMED, fault)
    return
  end
  local part = message.header
  local header
  header, fault = read_header(
    frame, message.values.serialize_type, part.content_at, part.content_at + part.content_size)
  local command = header and command_of(header)
  local exchange = command and known_exchange(frame.pinfo, command)
  local name, body
  if command then
    name, body = message_of(command, exchange)
    local kind = command.is_answer and "answer" or command.is_oneway and "one-way" or "request"
    local words = string.format("%s %s, opaque %d", kind, command.name, command.opaque)
    tree:append_text(", " .. words)
    describe(frame, "RocketMQ", words)
    show_generated(tree, "rocketmq.code_name", command.name)
    if name then
      show_generated(tree, "rocketmq.message", name)
    end
    if exchange then
      show_exchange(tree, command, exchange)
    end
  end
  for _, each in ipairs(message.parts) do
    if each == part and header then
      show_header(frame, tree, header, part, name)
    elseif each == message.body and command then
      show_body(frame, tree, each, command, body)
    else
      show_part(frame, tree, each)
    end
  end
  if fault and not header then
    show_fault(tree, REMOTING_MALFORMED, fault)
    describe(frame, "RocketMQ", "malformed " .. form.message)
  end
end

-- Whether the fixed part of a binary header is there, and all its numbers that have names have known ones.
local function names_known(frame, at, limit)
  local fields, size = fixed_part(BINARY_HEADER)
  local header = at + size <= limit and read_message(frame, fields, at, limit)
  for _, part in ipairs(header and header.parts or {}) do
    if part.field.enum and not SPECIFICATION.enums[part.field.enum][part.value] then
      return false
    end
  end
  return header and true or false
end

-- Whether the first bytes of a segment are a command: its frame fits, and its header too, as far as it is
-- there.
local function remoting_starts(tvb)
  local frame, limit = {tvb = tvb, data = tvb:raw()}, tvb:len()
  local size = measure(REMOTING_STREAM, frame.data, 0, limit)
  local fields, fixed = fixed_part(REMOTING_FRAME)
  if size < fixed or limit <= fixed then
    return false
  end
  local message = read_message(frame, fields, 0, size)
  local header_end = message and fixed + message.values.header_length
  if not message or header_end > size then
    return false
  elseif header_end <= limit then
    return read_header(frame, message.values.serialize_type, fixed, header_end) ~= nil
  end
  local is_json = message.values.serialize_type == number_of("SerializeType", "JSON")
  if is_json then
    return frame.data:find("^%s*{", fixed + 1) ~= nil
  end
  return names_known(frame, fixed, limit)
end

local function dissect_remoting(tvb, pinfo, tree)
  return dissect_frames(REMOTING, REMOTING_MALFORMED, REMOTING_STREAM, tvb, pinfo, tree, show_command)
end

REMOTING.dissector = dissect_remoting
REMOTING.prefs.ports = Pref.range("TCP ports", "", "Ports of name servers, brokers and controllers", 65535)
local remoting_ports = ""

function REMOTING.prefs_changed()
  remoting_ports = take_ports(REMOTING, remoting_ports, REMOTING.prefs.ports)
end

function REMOTING.init()
  reset_exchanges()
end

DissectorTable.get("tcp.port"):add_for_decode_as(REMOTING)
REMOTING:register_heuristic("tcp", function(tvb, pinfo, tree)
  if not remoting_starts(tvb) then
    return false
  end
  pinfo.conversation = REMOTING
  dissect_remoting(tvb, pinfo, tree)
  return true
end)
