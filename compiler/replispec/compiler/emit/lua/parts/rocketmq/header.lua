-- ---- the header of a remoting command, in both encodings -----------------------------------------

local HEADER = SPECIFICATION.messages.RemotingHeader
local BINARY_HEADER, HEADER_FIELDS = {}, {}
for _, field in ipairs(HEADER) do
  HEADER_FIELDS[field.key] = field
  if not field.json_only then
    BINARY_HEADER[#BINARY_HEADER + 1] = field
  end
end

local function entries_of_json(node)
  local parts = {}
  for _, member in ipairs(node.members) do
    if not member.key then
      return nil
    end
    local value = member.node
    parts[#parts + 1] = {
      key = clean(member.key), key_at = member.key_first, key_size = value.first - member.key_first,
      value = value.kind ~= "null" and (value.text or "") or nil,
      at = value.first, size = value.last - value.first,
    }
  end
  return parts
end

-- The part of a header field that a JSON node holds; nil when it has another type.
local function part_of_json(field, node)
  local part = {field = field, at = node.first, size = node.last - node.first}
  if field.type == "map" then
    part.parts = node.kind == "object" and entries_of_json(node) or nil
    return part.parts and part or nil
  elseif field.type == "string" then
    part.value = node.kind == "string" and node.text or nil
  elseif field.name_in_json and node.kind == "string" then
    part.value = number_of(field.enum, node.text)
  elseif node.text then
    part.value = integer_of(node.text, 4)
  end
  return part.value ~= nil and part or nil
end

local function read_json_header(frame, at, limit)
  local node = parse_json(frame.data, at, limit)
  if not node or node.kind ~= "object" then
    return nil, "the header is no JSON object"
  end
  local header = {parts = {}, values = {}, others = {}}
  for _, member in ipairs(node.members) do
    local field = HEADER_FIELDS[member.key]
    local part = field and member.node.kind ~= "null" and part_of_json(field, member.node)
    if part then
      header.parts[#header.parts + 1] = part
      header.values[field.name] = part.value
      header[field.name] = part
    elseif member.node.kind ~= "null" then
      header.others[#header.others + 1] = member
    end
  end
  return header
end

-- The parts and values of the header in bytes [at, limit); nil and the fault when there is none.
local function read_header(frame, encoding, at, limit)
  if encoding == number_of("SerializeType", "JSON") then
    return read_json_header(frame, at, limit)
  end
  local header, following = read_message(frame, BINARY_HEADER, at, limit)
  if header and following ~= limit then
    return nil, "the header goes on after its fields"
  end
  return header, following
end

-- ---- extension fields ----------------------------------------------------------------------------

-- The value of a header field as its type says; nil when the text is no such value.
local function typed(field, text)
  if field.type == "string" then
    return text
  elseif field.type == "bool" then
    return text:lower() == "true"
  end
  return integer_of(text, field.type == "int64" and 8 or 4)
end

-- The filters of the extension fields of each message, "" for a message that is not known.
local ENTRY_FILTERS = {[""] = {"rocketmq.ext_fields", "rocketmq.ext_fields.key", "rocketmq.ext_fields.value"}}
-- The fields of each message that have a key (several in disjoint releases).
local KEYED = {}
for message, fields in pairs(SPECIFICATION.headers) do
  local filters, keyed = {table.unpack(ENTRY_FILTERS[""])}, {}
  for _, field in ipairs(fields) do
    filters[#filters + 1] = field.filter
    keyed[field.key] = keyed[field.key] or {}
    table.insert(keyed[field.key], field)
  end
  ENTRY_FILTERS[message], KEYED[message] = filters, keyed
end

local function entries_wanted(tree, message)
  return any_wanted(tree, message and ENTRY_FILTERS[message] or ENTRY_FILTERS[""])
end

-- Show the extension fields: key and value each, and below them what the specification knows of them.
local function show_entries(frame, tree, part, message)
  local filter = part.field.filter
  if not entries_wanted(tree, message) then
    return
  end
  local list = tree:add(FIELDS[filter], frame.tvb(part.at, part.size))
  local known = message and KEYED[message] or {}
  for _, entry in ipairs(part.parts) do
    local range = frame.tvb(entry.key_at, entry.at + entry.size - entry.key_at)
    local item = list:add(FIELDS[filter .. ".key"], range, entry.key)
    item:set_text(entry.key .. ": " .. (entry.value or "null"))
    if entry.value then
      item:add(FIELDS[filter .. ".value"], frame.tvb(entry.at, entry.size), entry.value)
      for _, field in ipairs(known[entry.key] or {}) do
        local value = typed(field, entry.value)
        if value ~= nil then
          item:add(FIELDS[field.filter], frame.tvb(entry.at, entry.size), value)
        end
      end
    end
  end
end
