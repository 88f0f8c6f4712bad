-- Counts the tokens of a whole JSON answer: engines write `usage` last, so its last bytes are remembered as it passes by.
local TAIL = 65536

-- The object's span. In JSON `"usage"` with its quotes is a whole string, unless a backslash stands before it.
local function usage_object(text)
  local at = 1
  while true do
    local first, last = find(text, '"usage"', at, true)
    if not first then return nil end
    local colon, mark = skip_blanks(text, last + 1)
    if mark == 58 and byte(text, first - 1) ~= 92 then
      local open, brace = skip_blanks(text, colon + 1)
      local close = brace == 123 and top_level_end(text, open)
      if close then return open, close end
    end
    at = last + 1
  end
end

-- A count of the object, by its name in chat and completions or, after that, in responses.
local function count(text, name, other)
  local _, last = find(text, name, 1, true)
  if not last then return other and count(text, other, nil) end
  local colon, mark = skip_blanks(text, last + 1)
  if mark ~= 58 then return nil end
  local first = skip_blanks(text, colon + 1)
  local digit, value = byte(text, first), nil
  while digit and digit >= 48 and digit <= 57 do
    value = (value or 0) * 10 + digit - 48
    first = first + 1
    digit = byte(text, first)
  end
  return value
end

local function count_whole(handle)
  local text = ''
  for part in handle:bodyChunks() do
    text = text .. part:getBytes(0, part:length())
    if #text > TAIL then text = sub(text, -TAIL) end
  end
  local open, close = usage_object(text)
  if not open then return end
  local usage = string.gsub(sub(text, open + 1, close - 1), '%b{}', '')
  local metadata = handle:streamInfo():dynamicMetadata()
  local into = count(usage, '"prompt_tokens"', '"input_tokens"')
  local out = count(usage, '"completion_tokens"', '"output_tokens"')
  if into then metadata:set('moonstack.usage', 'in', into) end
  if out then metadata:set('moonstack.usage', 'out', out) end
end
