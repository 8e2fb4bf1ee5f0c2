-- ---- records of the commit log -------------------------------------------------------------------

local LOG, LOG_MALFORMED = new_protocol("rocketmq_log")
local LOG_STREAM = SPECIFICATION.streams.COMMIT_LOG
local LOG_FILTERS = PROTOCOL_FILTERS.rocketmq_log
local RECORDS_MAXIMUM = 1000

-- Whether a record starts at byte `at`.
local function log_starts(data, at, limit)
  return measure(LOG_STREAM, data, at, limit) > 0
end

-- Show the records that lie whole in bytes [at, limit), one after the other.
local function dissect_log(frame, at, limit, tree)
  if not any_wanted(tree, LOG_FILTERS) then
    return
  end
  for _ = 1, RECORDS_MAXIMUM do
    local size, form = measure(LOG_STREAM, frame.data, at, limit)
    if size <= 0 or at + size > limit then
      return
    end
    local item = tree:add(LOG, frame.tvb(at, size))
    show_generated(item, "rocketmq_log.message", form.message)
    local record, fault = read_message(frame, SPECIFICATION.messages[form.message], at, at + size)
    if record then
      for _, part in ipairs(record.parts) do
        show_part(frame, item, part)
      end
      if record.values.physical_offset then
        item:append_text(", offset " .. tostring(record.values.physical_offset))
      end
    else
      show_fault(item, LOG_MALFORMED, fault)
    end
    at = at + size
  end
end
