-- Reads the top level of a JSON object without decoding it, so that bytes can be changed in place.
-- Quotes are found by plain search: a long prompt costs about a microsecond a kilobyte.
local MAX_DEPTH = 128

local function string_end(text, open)
  local close = open
  while true do
    close = string.find(text, '"', close + 1, true)
    if not close then return nil end
    local slash = close - 1
    while string.byte(text, slash) == 92 do slash = slash - 1 end
    if (close - slash) % 2 == 1 then return close end
  end
end

-- The span of the string without escapes that follows a key, and where it closes; else false or nil.
local function string_value(text, after)
  local _, open = string.find(text, '^%s*:%s*"', after)
  if not open then return false end
  local close = string_end(text, open)
  if not close then return nil end
  if string.find(string.sub(text, open, close), '\\', 1, true) then return false end
  return { first = open + 1, last = close - 1 }, close
end

-- Spans of the top-level members `model` and `cache_salt`, whether `stream` is true, and which members there are.
-- nil when the text is not one JSON object, is too deep, writes a key with escapes, or repeats a member that matters.
local function top_level(text)
  local at = string.find(text, '%S')
  if not at or string.byte(text, at) ~= 123 then return nil end
  local found, depth = { open = at, has = {} }, 0
  while true do
    local here = string.find(text, '["{}%[%]]', at)
    if not here then break end
    local byte = string.byte(text, here)
    at = here + 1
    if byte == 34 then
      local close = string_end(text, here)
      if not close then return nil end
      at = close + 1
      if depth == 1 and string.find(text, '^%s*:', at) then
        local key = string.sub(text, here + 1, close - 1)
        if string.find(key, '\\', 1, true) then return nil end
        if key == 'model' or key == 'cache_salt' then
          if found.has[key] then return nil end
          local span, last = string_value(text, at)
          if not span then return nil end
          found[key], at = span, last + 1
        elseif key == 'stream' then
          found.stream = string.find(text, '^%s*:%s*true', at) ~= nil
        end
        found.has[key] = true
      end
    elseif byte == 123 or byte == 91 then
      if depth == 0 and here ~= found.open then return nil end
      depth = depth + 1
      if depth > MAX_DEPTH then return nil end
    else
      depth = depth - 1
      if depth < 0 then return nil end
    end
  end
  if depth ~= 0 then return nil end
  return found
end

local function replaced(text, first, last, with)
  return string.sub(text, 1, first - 1) .. with .. string.sub(text, last + 1)
end

local function set_body(handle, body, text)
  handle:headers():replace('content-length', tostring(body:setBytes(text)))
end
