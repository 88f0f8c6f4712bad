-- What the channel answers: its refusal of our key is not the caller's fault, and its 429 must not be tried again.
function envoy_on_response(handle)
  local headers = handle:headers()
  local status = headers:get(':status')
  if status == '401' or status == '403' then
    headers:replace(':status', '502')
  elseif status == '429' then
    headers:replace('x-envoy-ratelimited', 'true')
  end
end
