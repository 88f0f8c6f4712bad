-- Behind an internal listener: the endpoint that was chosen says which model name goes out, and where to.

-- Takes back what pick.lua did for a cluster's cache: the channel has no use for it, and shall not learn who asks.
local function unsalted(text, salt)
  local whole = '"cache_salt":"' .. salt .. '",'
  local found = top_level(text)
  if not found or not found.cache_salt then return text end
  if string.sub(text, found.open + 1, found.open + #whole) == whole then
    return replaced(text, found.open + 1, found.open + #whole, '')
  end
  return replaced(text, found.cache_salt.first, found.cache_salt.first + #salt - 1, '')
end

-- An alias's own defaults for chat, where the caller leaves them to it.
local function with_defaults(text, found, target)
  local added = ''
  if target.max_tokens and not found.has.max_tokens and not found.has.max_completion_tokens then
    added = '"max_tokens":' .. target.max_tokens .. ','
  end
  if target.temperature and not found.has.temperature then
    added = added .. '"temperature":' .. target.temperature .. ','
  end
  return replaced(text, found.open + 1, found.open, added)
end

-- What a caller sends beside its question stays here: any header may hold a key, an address or a name. Routes are found by
-- x-forwarded-proto, which the router takes away.
local function only_what_passes(headers)
  local rest = {}
  for name in pairs(headers) do
    if not PASSES[name] and sub(name, 1, 1) ~= ':' and sub(name, 1, 12) ~= 'x-moonstack-' and name ~= 'x-forwarded-proto' then rest[#rest + 1] = name end
  end
  for _, name in ipairs(rest) do headers:remove(name) end
end

function envoy_on_request(handle)
  local facts = handle:connectionStreamInfo():dynamicMetadata():get('moonstack')
  local target = {}
  for _, name in ipairs({ 'model', 'cluster', 'first', 'max_tokens', 'temperature' }) do target[name] = facts[name] end
  local chat = string.find(handle:headers():get(':path'), '^/v1/chat/completions') ~= nil
  local body = handle:body()
  if body ~= nil then
    local text = body:getBytes(0, body:length())
    local before = text
    if UNSALT then text = unsalted(text, handle:headers():get('x-moonstack-client') .. ':') end
    local found = top_level(text)
    if found and found.model then
      if string.sub(text, found.model.first, found.model.last) ~= target.model then
        text = replaced(text, found.model.first, found.model.last, target.model)
      end
      if chat then text = with_defaults(text, found, target) end
      if text ~= before then set_body(handle, body, text) end
    end
  end
  local headers = handle:headers()
  if PASSES then only_what_passes(headers) end
  headers:replace('x-moonstack-cluster', target.cluster)
  headers:replace('x-moonstack-first', target.first)
  handle:clearRouteCache()
end
