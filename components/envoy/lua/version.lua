-- Parts a key's id from its version: all that follows knows clients by id, and metrics count the versions.
function envoy_on_request(handle)
  local headers = handle:headers()
  local id, version, mark = string.match(headers:get('x-moonstack-client') or '', '^([^@]*)@(%x+)(.*)$')
  if id == nil then return end
  headers:replace('x-moonstack-client', id .. mark)
  handle:streamInfo():dynamicMetadata():set('moonstack.key', 'version', version)
end
