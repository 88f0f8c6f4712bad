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

function envoy_on_request(handle)
  local target = handle:connectionStreamInfo():dynamicMetadata():get('moonstack')
  local model, cluster, first = target.model, target.cluster, target.first
  local body = handle:body()
  if body ~= nil then
    local text = body:getBytes(0, body:length())
    local before = text
    if UNSALT then text = unsalted(text, handle:headers():get('x-moonstack-client') .. ':') end
    local found = top_level(text)
    if found and found.model and string.sub(text, found.model.first, found.model.last) ~= model then
      text = replaced(text, found.model.first, found.model.last, model)
    end
    if text ~= before then set_body(handle, body, text) end
  end
  local headers = handle:headers()
  headers:replace('x-moonstack-cluster', cluster)
  headers:replace('x-moonstack-first', first)
  handle:clearRouteCache()
end
