-- Behind an internal listener: the endpoint that was chosen says which model name goes out, and where to.
function envoy_on_request(handle)
  local target = handle:connectionStreamInfo():dynamicMetadata():get('moonstack')
  local model, cluster, first = target.model, target.cluster, target.first
  local body = handle:body()
  if body ~= nil then
    local text = body:getBytes(0, body:length())
    local found = top_level(text)
    if found and found.model and string.sub(text, found.model.first, found.model.last) ~= model then
      set_body(handle, body, replaced(text, found.model.first, found.model.last, model))
    end
  end
  local headers = handle:headers()
  headers:replace('x-moonstack-cluster', cluster)
  headers:replace('x-moonstack-first', first)
  handle:clearRouteCache()
end
