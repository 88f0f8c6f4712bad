-- Kthena's router answers its own errors with a bare JSON string, and no engine within reach with 400 or 404, as if the caller
-- were wrong. What the caller can't mend becomes 503, so that the next target is tried.
local WRONG = { ['prompt not found'] = true }

function envoy_on_response(handle)
  local status = tonumber(handle:headers():get(':status'))
  if status < 400 then return end
  local body = handle:body()
  if body == nil then return end
  local text = body:getBytes(0, math.min(body:length(), 512))
  local said = string.match(text, '^"([^"\\]*)"')
  if said == nil then return end
  local kind, code = 'server_error', 'model_unavailable'
  if WRONG[said] then
    status, kind, code = 400, 'invalid_request_error', 'invalid_body'
  elseif status == 429 then
    kind, code = 'rate_limit_error', 'rate_limit_exceeded'
  else
    status = 503
  end
  local answer = '{"error": {"message": "The router of this model says: ' .. said .. '.", "type": "' .. kind
  local length = body:setBytes(answer .. '", "param": null, "code": "' .. code .. '"}}')
  local headers = handle:headers()
  headers:replace('content-length', tostring(length))
  headers:replace('content-type', 'application/json')
  headers:replace(':status', tostring(status))
end
