-- ---- replication ---------------------------------------------------------------------------------

local HA, HA_MALFORMED = new_protocol("rocketmq_ha")
local HA_STREAMS = SPECIFICATION.streams
-- No commit log is longer: a larger offset at the start of a stream is noise.
local HIGH_HALF_MAXIMUM = 65535
-- The replica of each TCP stream, as `sender` names it.
local REPLICAS = {}
local legacy_ranges = {}

local function show_ha(frame, form, at, limit, tree)
  describe(frame, "RocketMQ HA", form.message)
  tree:append_text(", " .. form.message)
  show_generated(tree, "rocketmq_ha.message", form.message)
  local message, fault = read_message(frame, SPECIFICATION.messages[form.message], at, limit)
  if not message then
    show_fault(tree, HA_MALFORMED, fault)
    return
  end
  for _, part in ipairs(message.parts) do
    show_part(frame, tree, part)
  end
  local body = message.body
  if body then
    dissect_log(frame, body.content_at, body.content_at + body.content_size, tree)
  end
end

-- Whether the fixed fields of a message make sense, stricter than the specification: what starts a stream
-- must not be noise.
local function plausible(frame, form, at, limit)
  local fields, size = fixed_part(SPECIFICATION.messages[form.message])
  local message = at + size <= limit and read_message(frame, fields, at, limit)
  for _, part in ipairs(message and message.parts or {}) do
    local high = part.size == 8 and signed(frame.data, part.at, 4) or 0
    local is_noise = high > HIGH_HALF_MAXIMUM or high < -1
    if part.field.type == "bool" then
      is_noise = unsigned(frame.data, part.at, part.size) > 1
    end
    if is_noise then
      return false
    end
  end
  return message and true or false
end

-- Whether the segment consists of whole frames of a replica and nothing else.
local function from_replica(frame, limit)
  local at = 0
  while at < limit do
    local size, form = measure(HA_STREAMS.HA_REPLICA, frame.data, at, limit)
    if size <= 0 or at + size > limit or not plausible(frame, form, at, limit) then
      return false
    end
    at = at + size
  end
  return limit > 0
end

-- Whether the segment starts with a frame of a master, which may be longer than it.
local function from_master(frame, stream, limit)
  local size, form = measure(stream, frame.data, 0, limit)
  return size > 0 and plausible(frame, form, 0, limit)
end

local function master_stream()
  return HA.prefs.padded_answers and HA_STREAMS.HA_MASTER_5_0_0 or HA_STREAMS.HA_MASTER
end

-- The stream that the packet's bytes belong to, by what its connection showed before, or by the bytes.
local function ha_stream(tvb, pinfo)
  if in_ranges(pinfo.dst_port, legacy_ranges) then
    return HA_STREAMS.HA_LEGACY_REPLICA
  elseif in_ranges(pinfo.src_port, legacy_ranges) then
    return HA_STREAMS.HA_LEGACY_MASTER
  end
  local number = stream_number()
  if not REPLICAS[number] then
    local frame = {tvb = tvb, data = tvb:raw()}
    if from_replica(frame, tvb:len()) then
      REPLICAS[number] = sender(pinfo)
    elseif from_master(frame, master_stream(), tvb:len()) then
      REPLICAS[number] = receiver(pinfo)
    else
      return nil
    end
  end
  return REPLICAS[number] == sender(pinfo) and HA_STREAMS.HA_REPLICA or master_stream()
end

local function dissect_ha(tvb, pinfo, tree)
  local stream = ha_stream(tvb, pinfo)
  if not stream then
    return 0
  end
  return dissect_frames(HA, HA_MALFORMED, stream, tvb, pinfo, tree, show_ha)
end

HA.dissector = dissect_ha
HA.prefs.ports = Pref.range("TCP ports", "", "Ports where masters wait for replicas", 65535)
HA.prefs.padded_answers = Pref.bool("Masters are 5.0.0", false, "Their handshake answers hold 16 unused bytes")
HA.prefs.legacy_ports =
  Pref.range("TCP ports without controller", "", "Ports of masters outside controller mode", 65535)
local ha_ports, legacy_ports = "", ""

function HA.prefs_changed()
  ha_ports = take_ports(HA, ha_ports, HA.prefs.ports)
  legacy_ports = take_ports(HA, legacy_ports, HA.prefs.legacy_ports)
  legacy_ranges = ranges(legacy_ports)
end

function HA.init()
  REPLICAS = {}
end

DissectorTable.get("tcp.port"):add_for_decode_as(HA)
HA:register_heuristic("tcp", function(tvb, pinfo, tree)
  if not ha_stream(tvb, pinfo) then
    return false
  end
  pinfo.conversation = HA
  dissect_ha(tvb, pinfo, tree)
  return true
end)
