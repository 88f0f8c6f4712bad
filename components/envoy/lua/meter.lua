-- METERED clients have quotas of tokens or money. Their streams are asked to say what they used, which a caller who didn't ask
-- never sees; what ends without having said it counts its prompt by length, and each event of a stream as a token.
local BYTES_A_TOKEN, HELD = 4, 65536
local ASKED = '"include_usage":true'

local function asking(text, found)
  local at = found.has.stream_options
  if not at then return replaced(text, found.open + 1, found.open, '"stream_options":{' .. ASKED .. '},') end
  if sub(text, at, at + 3) == 'null' then return replaced(text, at, at + 3, '{' .. ASKED .. '}') end
  local close = byte(text, at) == 123 and top_level_end(text, at)
  local options = close and top_level(sub(text, at, close))
  if not options then return text end
  local value = options.has.include_usage
  if not value then
    local _, next = skip_blanks(text, at + 1)
    return replaced(text, at + 1, at, next == 125 and ASKED or ASKED .. ',')
  end
  value = at + value - 1
  if sub(text, value, value + 4) == 'false' then return replaced(text, value, value + 4, 'true') end
  if sub(text, value, value + 3) == 'null' then return replaced(text, value, value + 3, 'true') end
  return text
end

-- The body as it goes on, for a client with a quota.
local function metered(handle, text, found)
  local metadata = handle:streamInfo():dynamicMetadata()
  metadata:set('moonstack.least', 'in', math.ceil(#text / BYTES_A_TOKEN))
  metadata:set('moonstack.least', 'out', 0)
  local path = handle:headers():get(':path')
  if not found.stream or not (find(path, '^/v1/chat/completions') or find(path, '^/v1/completions')) then return text end
  local changed = asking(text, found)
  if changed ~= text then metadata:set('moonstack.least', 'hide', true) end
  return changed
end

-- Whether a line is the chunk that asking has added: usage, and no choices.
local function usage_alone(line)
  if not find(line, '"usage"', 1, true) then return false end
  local open = find(line, '{', 1, true)
  local found = open and top_level(sub(line, open))
  if not found or not found.has.usage or not found.has.choices then return false end
  line = sub(line, open)
  local _, mark = skip_blanks(line, found.has.choices + 1)
  return byte(line, found.has.usage) == 123 and byte(line, found.has.choices) == 91 and mark == 93
end

-- Whether an event's JSON object begins there.
local function event_at(text, at)
  if sub(text, at, at + 4) ~= 'data:' then return false end
  local _, mark = skip_blanks(text, at + 5)
  return mark == 123
end

-- Whether a line that has only begun may become such a chunk.
local function may_be_usage(start)
  if #start > HELD then return false end
  if #start < 7 then return start == sub('data: {', 1, #start) end
  return event_at(start, 1)
end

-- Passes a stream on as it comes, but for the line that its caller didn't ask for; the begun part of a line that may be it waits.
local function count_stream(handle)
  local least = handle:streamInfo():dynamicMetadata():get('moonstack.least')
  if not least then return end
  local hide, events, held, inside, hidden = least.hide, 0, '', false, false
  if hide then handle:headers():remove('content-length') end
  for part in handle:bodyChunks() do
    local came = part:getBytes(0, part:length())
    local text, at, from, kept = held .. came, 1, 1, ''
    local stop = find(text, '\n', 1, true)
    while stop do
      local drop = hidden and (stop == at or stop == at + 1 and byte(text, at) == 13)
      hidden = false
      if not inside and event_at(text, at) then
        events = events + 1
        hidden = hide and usage_alone(sub(text, at, stop))
        drop = hidden
      end
      if drop then
        kept = kept .. sub(text, from, at - 1)
        from = stop + 1
      end
      inside, at = false, stop + 1
      stop = find(text, '\n', at, true)
    end
    held = ''
    local rest = sub(text, at)
    if rest ~= '' and not inside then
      if came ~= '' and (hidden and rest == '\r' or hide and may_be_usage(rest)) then
        held = rest
      else
        inside = true
        if event_at(rest, 1) then events = events + 1 end
      end
    end
    local passed = kept .. sub(text, from, #text - #held)
    if passed ~= came then part:setBytes(passed) end
    handle:streamInfo():dynamicMetadata():set('moonstack.least', 'out', events)
  end
end
