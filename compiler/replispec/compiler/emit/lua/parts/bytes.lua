-- ---- numbers and texts ---------------------------------------------------------------------------
-- Positions count from 0, as in a Tvb; `data` is a Lua string of all its bytes.

local HALF = {128, 32768, 8388608, 2147483648}
local WORD = 4294967296

local function unsigned(data, at, size)
  local value = 0
  for place = at + 1, at + size do
    value = value * 256 + data:byte(place)
  end
  return value
end

-- Of at most 4 bytes: larger numbers do not fit a Lua number.
local function signed(data, at, size)
  local value = unsigned(data, at, size)
  if value >= HALF[size] then
    return value - 2 * HALF[size]
  end
  return value
end

-- Whether minimum <= number <= maximum holds. A number of 8 bytes is compared by its halves, and then
-- a bound is {high, low}; a bound that is absent holds.
local function within(data, at, size, is_unsigned, minimum, maximum)
  if size < 8 then
    local value = is_unsigned and unsigned(data, at, size) or signed(data, at, size)
    return (minimum == nil or minimum <= value) and (maximum == nil or value <= maximum)
  end
  local high, low = signed(data, at, 4), unsigned(data, at + 4, 4)
  local above = minimum == nil or high > minimum[1] or (high == minimum[1] and low >= minimum[2])
  local below = maximum == nil or high < maximum[1] or (high == maximum[1] and low <= maximum[2])
  return above and below
end

-- `value & mask`, both signed numbers of at most 32 bits; the result is not negative.
local function masked(value, mask)
  value, mask = value % WORD, mask % WORD
  local result, bit = 0, 1
  while mask > 0 do
    if mask % 2 == 1 and value % 2 == 1 then
      result = result + bit
    end
    value, mask, bit = (value - value % 2) / 2, (mask - mask % 2) / 2, bit * 2
  end
  return result
end

-- The length in bytes of the UTF-8 character at `place` (from 1); nil when there is none.
local function character_size(text, place)
  local first = text:byte(place)
  local size = first < 128 and 1 or first >= 240 and first < 245 and 4 or first >= 224 and first < 240 and 3
    or first >= 194 and first < 224 and 2
  if not size or place + size - 1 > #text then
    return nil
  end
  for next_place = place + 1, place + size - 1 do
    local byte = text:byte(next_place)
    if byte < 128 or byte > 191 then
      return nil
    end
  end
  return size
end

-- The text as it may be shown: without zero bytes, and with a question mark for what is no UTF-8.
local function clean(text)
  if text:find("\0", 1, true) then
    text = text:gsub("\0", "?")
  end
  if not text:find("[\128-\255]") then
    return text
  end
  local pieces, place = {}, 1
  while place <= #text do
    local size = character_size(text, place)
    pieces[#pieces + 1] = size and text:sub(place, place + size - 1) or "?"
    place = place + (size or 1)
  end
  return table.concat(pieces)
end

-- The digits as an Int64; nil when they are no number of at most `size` bytes (4 or 8).
local LIMITS = {
  [4] = {["-"] = "2147483648", [""] = "2147483647"},
  [8] = {["-"] = "9223372036854775808", [""] = "9223372036854775807"},
}
local function integer_of(text, size)
  local sign, digits = text:match("^(%-?)0*(%d+)$")
  if not digits then
    return nil
  end
  local limit = LIMITS[size][sign]
  if #digits > #limit or (#digits == #limit and digits > limit) then
    return nil
  end
  if size == 4 then
    return tonumber(sign .. digits)
  end
  return Int64.new(sign .. digits)
end
