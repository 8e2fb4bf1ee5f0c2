-- ---- frames of a TCP stream ----------------------------------------------------------------------

local tcp_stream = Field.new("tcp.stream")

-- The number of the packet's TCP stream, the innermost one when there are several.
local function stream_number()
  local found = {tcp_stream()}
  return #found > 0 and found[#found].value or -1
end

-- Who sends (or receives) the packet, told apart from its peer.
local function sender(pinfo)
  return pinfo.src_port ~= pinfo.dst_port and pinfo.src_port or tostring(pinfo.src)
end

local function receiver(pinfo)
  return pinfo.src_port ~= pinfo.dst_port and pinfo.dst_port or tostring(pinfo.dst)
end

-- Size of the frame at byte `at` and its form; 0 when there is none; -1 when more bytes are needed to know.
local function measure(stream, data, at, limit)
  for _, form in ipairs(stream.forms) do
    local fits = true
    for _, test in ipairs(form.tests) do
      if at + test.at + test.size > limit then
        return -1
      end
      fits = within(data, at + test.at, test.size, test.size == 1, test.minimum, test.maximum)
      if not fits then
        break
      end
    end
    if fits and not form.length_size then
      return form.fixed, form
    elseif fits then
      local place = at + form.length_at
      if place + form.length_size > limit then
        return -1
      end
      local length = (form.length_size == 1 and unsigned or signed)(data, place, form.length_size)
      if length < form.minimum or length > form.maximum then
        return 0
      end
      return form.fixed + length, form
    end
  end
  return 0
end

-- Show every whole frame and ask TCP for the rest of the last one. Returns the bytes that were taken:
-- none when the first ones are no frame.
local function dissect_frames(protocol, malformed, stream, tvb, pinfo, tree, show)
  local frame = {tvb = tvb, data = tvb:raw(), pinfo = pinfo}
  local at, limit = 0, tvb:len()
  while at < limit do
    local size, form = measure(stream, frame.data, at, limit)
    if size == 0 then
      if at > 0 then
        local rest = tree:add(protocol, tvb(at, limit - at))
        show_fault(rest, malformed, "no frame starts here")
      end
      return at > 0 and limit or 0
    elseif size < 0 or at + size > limit then
      if pinfo.can_desegment > 0 then
        pinfo.desegment_offset = at
        pinfo.desegment_len = size < 0 and DESEGMENT_ONE_MORE_SEGMENT or at + size - limit
      else
        tree:add(protocol, tvb(at, limit - at), "Cut frame")
      end
      return limit
    end
    show(frame, form, at, at + size, tree:add(protocol, tvb(at, size)))
    at = at + size
  end
  return limit
end

-- The columns of the packet list: the protocol, and a word for each frame of the packet.
local function describe(frame, protocol, text)
  local columns = frame.pinfo.cols
  columns.protocol = protocol
  if not frame.is_described then
    columns.info:clear()
  end
  columns.info:append(text .. "  ")
  columns.info:fence()
  frame.is_described = true
end

-- The numbers of a range such as "9876,10909-10911", as pairs.
local function ranges(text)
  local found = {}
  for piece in tostring(text):gmatch("[^,]+") do
    local first, last = piece:match("^%s*(%d+)%s*%-?%s*(%d*)%s*$")
    if first then
      found[#found + 1] = {tonumber(first), tonumber(last) or tonumber(first)}
    end
  end
  return found
end

local function in_ranges(number, found)
  for _, range in ipairs(found) do
    if range[1] <= number and number <= range[2] then
      return true
    end
  end
  return false
end

-- Let `protocol` take the ports of a preference instead of those that it took before.
local function take_ports(protocol, before, now)
  local ports = DissectorTable.get("tcp.port")
  if before ~= "" then
    ports:remove(before, protocol)
  end
  if now ~= "" then
    ports:add(now, protocol)
  end
  return now
end
