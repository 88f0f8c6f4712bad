-- Tells the routes which model a request asks for; with ISOLATE, salts the KV cache by the client's key.
-- METERED clients have quotas of tokens or money: their streams are asked to say what they used, or they would count nothing.
local USAGE = '"stream_options":{"include_usage":true},'

local function tells_usage(headers, found)
  if not found.stream or found.has.stream_options then return true end
  local path = headers:get(':path')
  return not string.find(path, '^/v1/chat/completions') and not string.find(path, '^/v1/completions')
end

-- Up to here the client's header names the version of its key, too; all that follows knows clients by id.
local function known_by_id(headers)
  local client = string.gsub(headers:get('x-moonstack-client') or '', '@%x*', '', 1)
  headers:replace('x-moonstack-client', client)
  return client
end

function envoy_on_request(handle)
  local client = known_by_id(handle:headers())
  if handle:headers():get(':method') ~= 'POST' then return end
  local body = handle:body()
  if body == nil then return end
  local text = body:getBytes(0, body:length())
  local found = top_level(text)
  if not found or not found.model then return end
  local model = string.sub(text, found.model.first, found.model.last)
  if #model == 0 or #model > 127 or string.find(model, '[%c ]') then return end
  local headers = handle:headers()
  headers:replace('x-moonstack-model', model)
  headers:replace('x-moonstack-stream', found.stream and 'true' or 'false')
  local added, changed = '', text
  if ISOLATE then
    local salt = client .. ':'
    if found.cache_salt then
      changed = replaced(text, found.cache_salt.first, found.cache_salt.first - 1, salt)
    else
      added = '"cache_salt":"' .. salt .. '",'
    end
  end
  if METERED[client] and not tells_usage(headers, found) then added = added .. USAGE end
  if added ~= '' then changed = replaced(changed, found.open + 1, found.open, added) end
  if changed ~= text then set_body(handle, body, changed) end
  handle:clearRouteCache()
end
