-- ---- fields --------------------------------------------------------------------------------------

local FIELDS = {}
local ENTRIES_MAXIMUM = 10000

local MAKERS = {
  string = function(filter)
    return ProtoField.string(filter.name, filter.title, base.NONE, filter.about)
  end,
  bytes = function(filter)
    return ProtoField.bytes(filter.name, filter.title, base.NONE, filter.about)
  end,
  bool = function(filter)
    return ProtoField.bool(filter.name, filter.title, base.NONE, nil, nil, filter.about)
  end,
  none = function(filter)
    return ProtoField.none(filter.name, filter.title, filter.about)
  end,
  request = function(filter)
    return ProtoField.framenum(filter.name, filter.title, base.NONE, frametype.REQUEST, nil, filter.about)
  end,
  response = function(filter)
    return ProtoField.framenum(filter.name, filter.title, base.NONE, frametype.RESPONSE, nil, filter.about)
  end,
  duration = function(filter)
    return ProtoField.relative_time(filter.name, filter.title, filter.about)
  end,
}

local NUMBERS = {int32 = true, uint32 = true, int64 = true, bool = true}

-- Say of the fields below `prefix` which filter shows each, and which are numbers of fixed size.
local function complete(fields, prefix)
  for _, field in ipairs(fields) do
    field.filter = prefix .. "." .. field.name
    field.number = field.size and not field.wider and not field.count and NUMBERS[field.type]
    if field.fields then
      complete(field.fields, field.filter)
    end
    if field.mark then
      complete(field.mark, field.filter)
    end
  end
end

for message, fields in pairs(SPECIFICATION.headers) do
  local words = message:gsub("([a-z0-9])([A-Z])", "%1_%2"):lower()
  complete(fields, SPECIFICATION.extended .. "." .. words)
end

-- The last part of a filter's name, in words.
local function title_of(name)
  local words = name:match("[^.]+$"):gsub("_", " ")
  return words:sub(1, 1):upper() .. words:sub(2)
end

local function new_field(name, filter, about)
  local make = MAKERS[filter.type]
  local made = {name = name, title = filter.title or title_of(name), about = about}
  local values = filter.enum and SPECIFICATION.enums[filter.enum] or nil
  FIELDS[name] = make and make(made)
    or ProtoField[filter.type](name, made.title, base.DEC, values, nil, about)
  return FIELDS[name]
end

local PROTOCOL_FILTERS = {}

-- The filters of fields that have none yet, those of their elements and entries too, in the order of the fields.
local function add_filters(fields, names, made)
  local function add(name, filter, about)
    names[#names + 1], made[#made + 1] = name, new_field(name, filter, about)
  end
  for _, field in ipairs(fields) do
    if not FIELDS[field.filter] then
      local is_group = field.fields or field.type == "map"
      add(field.filter, is_group and {type = "none"} or field, field.about)
      if field.type == "map" then
        add(field.filter .. ".key", {type = "string"}, "a key of " .. field.name)
        add(field.filter .. ".value", {type = "string"}, "a value of " .. field.name)
      elseif field.fields then
        add(field.filter .. ".element", {type = "none", title = field.type}, field.element)
        add_filters(field.fields, names, made)
      end
    end
  end
end

-- A protocol with all its filters, and the complaint that its bytes break the specification.
local function new_protocol(name)
  local about = SPECIFICATION.protocols[name]
  local protocol = Proto(name, about.title)
  local fields, names = {}, {}
  for _, message in ipairs(about.messages) do
    complete(SPECIFICATION.messages[message], name)
    add_filters(SPECIFICATION.messages[message], names, fields)
  end
  for _, filter in ipairs(about.filters) do
    names[#names + 1] = name .. "." .. filter.name
    fields[#fields + 1] = new_field(names[#names], filter, filter.about)
  end
  PROTOCOL_FILTERS[name] = names
  if SPECIFICATION.extended:find(name .. ".", 1, true) == 1 then
    for message, keyed in pairs(SPECIFICATION.headers) do
      for _, field in ipairs(keyed) do
        local meaning = field.about and ": " .. field.about or ""
        fields[#fields + 1] = new_field(field.filter, field, field.key .. " of " .. message .. meaning)
      end
    end
  end
  protocol.fields = fields
  local severity = expert.severity.WARN
  local malformed = ProtoExpert.new(name .. ".malformed", "Malformed", expert.group.MALFORMED, severity)
  protocol.experts = {malformed}
  return protocol, malformed
end

-- The number of an enum's value, by the value's name.
local function number_of(enum, name)
  for number, names in pairs(SPECIFICATION.enums[enum]) do
    if names == name then
      return number
    end
  end
  return nil
end

local function name_of(enum, number)
  return SPECIFICATION.enums[enum][number] or string.format("%d", number)
end

-- ---- reading binary messages ---------------------------------------------------------------------
-- A part is {field, at, size, value}; `value` is the number or text, nil for bytes. The parts of a list
-- or map are in `parts`. A frame is {tvb, data}. Readers return nil and the fault when the bytes break
-- the layout; nothing is shown before it was read.

local read_message

local function read_number(frame, field, at, limit)
  local size, data = field.size, frame.data
  if at + size > limit then
    return nil, field.name .. " is cut"
  end
  local is_unsigned = field.type == "uint32" or size == 1
  if not within(data, at, size, is_unsigned, field.minimum, field.maximum) then
    return nil, field.name .. " is out of bounds"
  end
  if field.among and not field.among[signed(data, at, size)] then
    return nil, field.name .. " is none of its values"
  end
  local value
  if field.type == "bool" then
    value = unsigned(data, at, size) == 1
  elseif size == 8 then
    value = frame.tvb(at, size):int64()
  else
    value = is_unsigned and unsigned(data, at, size) or signed(data, at, size)
  end
  return {field = field, at = at, size = size, value = value}
end

-- The number before a variable part: of 1 or 3 bytes without a sign, else with one.
local function read_prefix(frame, at, size, limit)
  if at + size > limit then
    return nil
  end
  return (size % 2 == 1 and unsigned or signed)(frame.data, at, size)
end

-- Bytes of the prefix of a variable part, and of its content.
local function extent(frame, field, at, limit, values)
  local wider = field.wider
  local widened = wider and masked(values[wider.field], wider.mask) == wider.equals % WORD
  if field.prefix then
    local prefix = widened and wider.size or field.prefix
    return prefix, read_prefix(frame, at, prefix, limit)
  elseif field.length == "rest" then
    return 0, limit - at
  elseif field.length then
    return 0, values[field.length]
  end
  return 0, widened and wider.size or field.size
end

local function read_map(frame, field, at, limit)
  local parts = {}
  while at < limit do
    local key_size = read_prefix(frame, at, field.key_prefix, limit)
    local value_at = key_size and at + field.key_prefix + key_size
    local value_size = key_size and key_size >= 0 and read_prefix(frame, value_at, field.value_prefix, limit)
    if not value_size or value_size < 0 or #parts >= ENTRIES_MAXIMUM then
      return nil, field.name .. " breaks off"
    end
    local following = value_at + field.value_prefix + value_size
    if following > limit then
      return nil, field.name .. " is cut"
    end
    local key = frame.data:sub(at + field.key_prefix + 1, value_at)
    local value = frame.data:sub(following - value_size + 1, following)
    parts[#parts + 1] = {
      key = clean(key), key_at = at, key_size = value_at - at,
      value = value_size > 0 and clean(value) or nil, at = value_at, size = following - value_at,
    }
    at = following
  end
  return parts
end

local function read_list(frame, field, at, limit)
  local parts = {}
  while at < limit do
    local part, following = read_message(frame, field.fields, at, limit)
    if not part or following == at then
      return nil, field.name .. " is cut"
    end
    parts[#parts + 1] = {at = at, size = following - at, parts = part.parts}
    at = following
  end
  return parts
end

-- The elements after their count: messages, or texts after their lengths.
local function read_counted(frame, field, at, limit)
  local count = read_prefix(frame, at, field.count, limit)
  if not count or count < (field.nullable and -1 or 0) or count > limit - at then
    return nil, "the number of " .. field.name .. " is out of bounds"
  elseif count > ENTRIES_MAXIMUM then
    return nil, field.name .. " are too many to show"
  end
  local part, following = {field = field, at = at, parts = {}}, at + field.count
  for _ = 1, count do
    local start, inner = following, nil
    if field.fields then
      inner, following = read_message(frame, field.fields, start, limit)
    else
      local size = read_prefix(frame, start, field.prefix, limit)
      following = size and size >= 0 and start + field.prefix + size or limit + 1
      inner = following <= limit and {value = clean(frame.data:sub(start + field.prefix + 1, following))}
    end
    if not inner then
      return nil, field.name .. " is cut"
    end
    part.parts[#part.parts + 1] = {at = start, size = following - start, parts = inner.parts, value = inner.value}
  end
  part.size = following - at
  return part
end

-- The elements before the mark that ends them; the part ends after the mark.
local function read_run(frame, field, at, limit)
  local part, following = {field = field, at = at, parts = {}}, at
  while true do
    local mark, after = read_message(frame, field.mark, following, limit)
    if mark then
      part.size = after - at
      return part
    end
    local start, inner = following, nil
    inner, following = read_message(frame, field.fields, start, limit)
    if not inner or following == start or #part.parts >= ENTRIES_MAXIMUM then
      return nil, field.name .. " breaks off"
    end
    part.parts[#part.parts + 1] = {at = start, size = following - start, parts = inner.parts}
  end
end

local function read_inner(frame, field, at, limit)
  local inner, following = read_message(frame, field.fields or {}, at, limit)
  if not inner then
    return nil, field.name .. ": " .. following
  end
  return {field = field, at = at, size = following - at, inner = inner.parts}
end

-- Whether a field is there at all, by an earlier number, or by the bytes that are left.
local function is_there(field, at, limit, values)
  if field.last then
    return at < limit
  end
  local when = field.when
  local value = when and values[when.field]
  return not when or (value >= (when.minimum or value) and value <= (when.maximum or value))
end

local function read_variable(frame, field, at, limit, values)
  if field.inner then
    return read_inner(frame, field, at, limit)
  elseif field.mark then
    return read_run(frame, field, at, limit)
  elseif field.count then
    return read_counted(frame, field, at, limit)
  end
  local prefix, size = extent(frame, field, at, limit, values)
  if field.nullable and size == -1 then
    return {field = field, at = at, size = prefix, content_at = at + prefix, content_size = 0}
  end
  if not size or size < 0 or at + prefix + size > limit then
    return nil, field.name .. " is cut"
  end
  if not ((field.minimum or 0) <= size and size <= (field.maximum or size)) then
    return nil, "the length of " .. field.name .. " is out of bounds"
  end
  local part = {field = field, at = at, size = prefix + size, content_at = at + prefix, content_size = size}
  local fault
  if field.type == "map" then
    part.parts, fault = read_map(frame, field, at + prefix, at + prefix + size)
  elseif field.fields then
    part.parts, fault = read_list(frame, field, at + prefix, at + prefix + size)
  elseif field.type == "string" then
    part.value = clean(frame.data:sub(at + prefix + 1, at + prefix + size))
  end
  if fault then
    return nil, fault
  end
  return part
end

-- The parts and values by name of the message at byte `at`, and the position after it.
function read_message(frame, fields, at, limit)
  local message, start = {parts = {}, values = {}}, at
  for _, field in ipairs(fields) do
    local part, fault
    if not is_there(field, at, limit, message.values) then
      part = {field = field, at = at, size = 0, absent = true}
    elseif field.number then
      part, fault = read_number(frame, field, at, limit)
    else
      part, fault = read_variable(frame, field, at, limit, message.values)
    end
    if not part then
      return nil, fault
    end
    at = at + part.size
    if field.measures then
      local whole = part.value + (field.measures == "after" and at - start or 0)
      if whole < at - start or start + whole > limit then
        return nil, field.name .. " is out of bounds"
      end
      limit = start + whole
    end
    if not part.absent then
      message.parts[#message.parts + 1] = part
    end
    message.values[field.name] = part.value
    message[field.name] = part
  end
  return message, at
end

-- The fields of a message before its first variable part, and their bytes.
local function fixed_part(fields)
  local found, size = {}, 0
  for _, field in ipairs(fields) do
    if not field.number then
      break
    end
    found[#found + 1], size = field, size + field.size
  end
  return found, size
end

-- ---- showing -------------------------------------------------------------------------------------

-- While Wireshark loads a capture or filters it, only the fields of the filter are looked at. The others are
-- not shown then, which saves most of the time.
local function is_wanted(tree, filter)
  return tree:referenced(FIELDS[filter])
end

local function any_wanted(tree, filters)
  for _, filter in ipairs(filters) do
    if tree:referenced(FIELDS[filter]) then
      return true
    end
  end
  return false
end

local function show_part(frame, tree, part)
  local field = part.field
  if not field.fields and not is_wanted(tree, field.filter) then
    return
  end
  if part.size == 0 then
    return
  end
  local range = frame.tvb(part.at, part.size)
  if part.inner then
    local item = tree:add(FIELDS[field.filter], range)
    for _, inner in ipairs(part.inner) do
      show_part(frame, item, inner)
    end
  elseif part.parts and field.type == "string" then
    for _, each in ipairs(part.parts) do
      tree:add(FIELDS[field.filter], frame.tvb(each.at, each.size), each.value)
    end
  elseif field.fields then
    local list = tree:add(FIELDS[field.filter], range)
    for _, element in ipairs(part.parts) do
      local item = list:add(FIELDS[field.filter .. ".element"], frame.tvb(element.at, element.size))
      for _, inner in ipairs(element.parts) do
        show_part(frame, item, inner)
      end
    end
  elseif part.value ~= nil then
    tree:add(FIELDS[field.filter], range, part.value)
  elseif field.type == "bytes" and part.content_size > 0 then
    tree:add(FIELDS[field.filter], frame.tvb(part.content_at, part.content_size))
  end
end

local function show_generated(tree, filter, value)
  if is_wanted(tree, filter) then
    tree:add(FIELDS[filter], value):set_generated()
  end
end

local function show_fault(tree, malformed, fault)
  tree:add_proto_expert_info(malformed, fault)
end
