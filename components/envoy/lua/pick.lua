-- Tells the routes which model a request asks for; with ISOLATE, salts the KV cache by the client's key.

-- Up to here the client's header names the version of its key, too; all that follows knows clients by id, and the logs both.
local function known_by_id(headers)
  local client = headers:get('x-moonstack-client') or ''
  local at = find(client, '@', 1, true)
  if not at then return client end
  local _, last = find(client, '^%x*', at + 1)
  headers:replace('x-moonstack-key-version', sub(client, at + 1, last))
  client = sub(client, 1, at - 1) .. sub(client, last + 1)
  headers:replace('x-moonstack-client', client)
  return client
end

local function salted(text, found, salt)
  if found.cache_salt then return replaced(text, found.cache_salt.first, found.cache_salt.first - 1, salt) end
  return replaced(text, found.open + 1, found.open, '"cache_salt":"' .. salt .. '",')
end

function envoy_on_request(handle)
  local client = known_by_id(handle:headers())
  if handle:headers():get(':method') ~= 'POST' then return end
  local body = handle:body()
  if body == nil then return end
  local text = body:getBytes(0, body:length())
  local found = top_level(text)
  if not found or not found.model then return end
  local model = sub(text, found.model.first, found.model.last)
  if #model == 0 or #model > 127 or find(model, '[%c ]') then return end
  local headers = handle:headers()
  headers:replace('x-moonstack-model', model)
  headers:replace('x-moonstack-stream', found.stream and 'true' or 'false')
  local changed = text
  if METERED and METERED[client] then changed = metered(handle, text, found) end
  if ISOLATE then changed = salted(changed, changed == text and found or top_level(changed), client .. ':') end
  if changed ~= text then set_body(handle, body, changed) end
  handle:clearRouteCache()
end
