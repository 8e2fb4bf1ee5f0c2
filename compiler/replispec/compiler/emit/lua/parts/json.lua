-- ---- JSON ----------------------------------------------------------------------------------------
-- As Java writes it: keys of maps may be numbers without quotes, or whole objects. A node is {kind, first,
-- last, text, members}: bytes [first, last) from 0; `text` of what is neither object nor array; members
-- are {key, node}, in an array without a key.

local JSON_NODES_MAXIMUM = 10000
local JSON_DEPTH_MAXIMUM = 64
local BLANK, QUOTE, COMMA, COLON = (' ",:'):byte(1, 4)
local OBJECT, OBJECT_END, ARRAY, ARRAY_END = ("{}[]"):byte(1, 4)
local ESCAPES = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t"}

local function character(code)
  if code < 128 then
    return string.char(code)
  elseif code < 2048 then
    return string.char(192 + math.floor(code / 64), 128 + code % 64)
  elseif code < 65536 then
    return string.char(224 + math.floor(code / 4096), 128 + math.floor(code / 64) % 64, 128 + code % 64)
  end
  local low = string.char(128 + math.floor(code / 64) % 64, 128 + code % 64)
  return string.char(240 + math.floor(code / 262144), 128 + math.floor(code / 4096) % 64) .. low
end

local function unescape(text)
  local pieces, place = {}, 1
  while true do
    local escape = text:find("\\", place, true)
    if not escape then
      pieces[#pieces + 1] = text:sub(place)
      return table.concat(pieces)
    end
    pieces[#pieces + 1] = text:sub(place, escape - 1)
    local high = text:match("^u(%x%x%x%x)", escape + 1)
    local low = high and text:match("^\\u([dD][c-fC-F]%x%x)", escape + 6)
    place = escape + (high and 6 or 2)
    if high then
      local code = tonumber(high, 16)
      if low and code >= 0xd800 and code < 0xdc00 then
        code = 0x10000 + (code - 0xd800) * 0x400 + tonumber(low, 16) - 0xdc00
        place = place + 6
      end
      pieces[#pieces + 1] = character(code)
    else
      local letter = text:sub(escape + 1, escape + 1)
      pieces[#pieces + 1] = ESCAPES[letter] or letter
    end
  end
end

-- The node of the JSON text that fills bytes [first, limit) of `data`; nil when it is none.
local function parse_json(data, first, limit)
  local text = data:sub(first + 1, limit)
  local nodes, value = 0, nil

  local function skip(place)
    if (text:byte(place) or 0) > BLANK then
      return place
    end
    return text:find("[^ \t\r\n]", place) or #text + 1
  end

  local function node(kind, place, following, content)
    return {kind = kind, first = first + place - 1, last = first + following - 1, text = content}, following
  end

  local function quoted(place)
    local at, escaped = place + 1, false
    while true do
      at = text:find('["\\]', at)
      if not at then
        return nil
      elseif text:byte(at) == QUOTE then
        break
      end
      at, escaped = at + 2, true
    end
    local content = text:sub(place + 1, at - 1)
    return node("string", place, at + 1, clean(escaped and unescape(content) or content))
  end

  local function bare(place)
    local word = text:match("^[%w%.%+%-_$]+", place)
    if not word then
      return nil
    end
    return node(word == "null" and "null" or "word", place, place + #word, word)
  end

  local function container(place, depth, closing)
    local members, at = {}, skip(place + 1)
    local is_object = closing == OBJECT_END
    while text:byte(at) ~= closing do
      local key
      if is_object then
        key, at = value(at, depth + 1)
        at = key and skip(at)
        if not key or text:byte(at) ~= COLON then
          return nil
        end
        at = skip(at + 1)
      end
      local member
      member, at = value(at, depth + 1)
      if not member then
        return nil
      end
      local name = key and (key.text or data:sub(key.first + 1, key.last))
      members[#members + 1] = {key = name, key_first = key and key.first, node = member}
      at = skip(at)
      local mark = text:byte(at)
      if mark == COMMA then
        at = skip(at + 1)
      elseif mark ~= closing then
        return nil
      end
    end
    local found, following = node(is_object and "object" or "array", place, at + 1)
    found.members = members
    return found, following
  end

  function value(place, depth)
    nodes = nodes + 1
    if nodes > JSON_NODES_MAXIMUM or depth > JSON_DEPTH_MAXIMUM then
      return nil
    end
    local mark = text:byte(place)
    if mark == OBJECT then
      return container(place, depth, OBJECT_END)
    elseif mark == ARRAY then
      return container(place, depth, ARRAY_END)
    elseif mark == QUOTE then
      return quoted(place)
    end
    return bare(place)
  end

  local found, following = value(skip(1), 0)
  if found and skip(following) > #text then
    return found
  end
  return nil
end

-- Show a node below `tree`, one line a member.
local function show_json(frame, tree, filter, node, name)
  local label = name and name .. ": " or ""
  local range = frame.tvb(node.first, node.last - node.first)
  if not node.members then
    tree:add(FIELDS[filter], range, label .. node.text):set_text(label .. node.text)
    return
  end
  local brackets = node.kind == "object" and "{}" or "[]"
  local item = tree:add(FIELDS[filter], range, label .. brackets)
  item:set_text(label .. brackets)
  for number, member in ipairs(node.members) do
    show_json(frame, item, filter, member.node, clean(member.key or string.format("[%d]", number - 1)))
  end
end
