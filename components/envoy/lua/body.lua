-- Reads the top level of a JSON object without decoding it, so that bytes can be changed in place.
-- Quotes are found by plain search and all else by byte: both are compiled, patterns are not.
local MAX_DEPTH = 128
local byte, find, sub = string.byte, string.find, string.sub

local function string_end(text, open)
  local close = open
  while true do
    close = find(text, '"', close + 1, true)
    if not close then return nil end
    local slash = close - 1
    while byte(text, slash) == 92 do slash = slash - 1 end
    if (close - slash) % 2 == 1 then return close end
  end
end

-- Where the next thing stands, from `at` on, and its first byte.
local function skip_blanks(text, at)
  local here = byte(text, at)
  while here == 32 or here == 10 or here == 13 or here == 9 do
    at = at + 1
    here = byte(text, at)
  end
  return at, here
end

-- The span of the string without escapes that stands there, and where it closes; nil for anything else.
local function string_value(text, at)
  local open, quote = skip_blanks(text, at)
  local close = quote == 34 and string_end(text, open)
  if not close or find(sub(text, open, close), '\\', 1, true) then return nil end
  return { first = open + 1, last = close - 1 }, close
end

-- Spans of the top-level members `model` and `cache_salt`, whether `stream` is true, and where each member's value begins.
-- nil when the text is not one JSON object, is too deep, writes a key with escapes, or repeats a member that matters.
local function top_level(text)
  local at, first = skip_blanks(text, 1)
  if first ~= 123 then return nil end
  local found, depth, length = { open = at, has = {} }, 0, #text
  while at <= length do
    local here = byte(text, at)
    if here == 34 then
      local close = string_end(text, at)
      if not close then return nil end
      local colon, mark = skip_blanks(text, close + 1)
      if depth == 1 and mark == 58 then
        local key = sub(text, at + 1, close - 1)
        if find(key, '\\', 1, true) then return nil end
        close = colon
        local value = skip_blanks(text, colon + 1)
        if key == 'model' or key == 'cache_salt' then
          if found.has[key] then return nil end
          found[key], close = string_value(text, value)
          if not close then return nil end
        elseif key == 'stream' then
          found.stream = sub(text, value, value + 3) == 'true'
        end
        found.has[key] = value
      end
      at = close
    elseif here == 123 or here == 91 then
      if depth == 0 and at ~= found.open then return nil end
      depth = depth + 1
      if depth > MAX_DEPTH then return nil end
    elseif here == 125 or here == 93 then
      depth = depth - 1
      if depth < 0 then return nil end
    end
    at = at + 1
  end
  if depth ~= 0 then return nil end
  return found
end

-- Where the object at `open` ends, if the rest of the text closes just one more level: it is a member of the top level then.
local function top_level_end(text, open)
  local at, depth, last, length = open, 0, nil, #text
  while at <= length do
    local here = byte(text, at)
    if here == 34 then
      local close = string_end(text, at)
      if not close then return nil end
      at = close
    elseif here == 123 or here == 91 then
      depth = depth + 1
    elseif here == 125 or here == 93 then
      depth = depth - 1
      if depth == 0 and not last then last = at end
    end
    at = at + 1
  end
  return depth == -1 and last
end

local function replaced(text, first, last, with)
  return sub(text, 1, first - 1) .. with .. sub(text, last + 1)
end

local function set_body(handle, body, text)
  handle:headers():replace('content-length', tostring(body:setBytes(text)))
end
