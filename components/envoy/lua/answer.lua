-- Notes of an answer what the logs can't see by themselves: that a target gave it, unless its status says so, and the tokens that it used.
function envoy_on_response(handle)
  local headers = handle:headers()
  if TIMED and headers:get(':status') ~= '200' and headers:get('x-moonstack-served-by') then
    handle:streamInfo():dynamicMetadata():set('moonstack.answer', 'by', 'target')
  end
  if not RECORDED then return end
  local kind = headers:get('content-type')
  if not kind then return end
  if sub(kind, 1, 16) == 'application/json' then
    count_whole(handle)
  elseif METERED and sub(kind, 1, 17) == 'text/event-stream' then
    count_stream(handle)
  end
end
