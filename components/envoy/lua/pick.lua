-- Tells the routes which model a request asks for; with ISOLATE, salts the KV cache by the client's key.
function envoy_on_request(handle)
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
  if ISOLATE then
    local salt = headers:get('x-moonstack-client') .. ':'
    if found.cache_salt then
      set_body(handle, body, replaced(text, found.cache_salt.first, found.cache_salt.first - 1, salt))
    else
      set_body(handle, body, replaced(text, found.open + 1, found.open, '"cache_salt":"' .. salt .. '",'))
    end
  end
  handle:clearRouteCache()
end
