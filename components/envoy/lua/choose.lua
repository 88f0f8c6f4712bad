-- For the group's name under latency_optimized: takes the alias whose answers have begun soonest lately.
-- The state is a worker's own; the gateway runs one worker.
local SHARE, FRESH, FAILED = 0.3, 30000, 60000
local began = {}

local function expected(key, now)
  local seen = began[key]
  if seen and now - seen.at < FRESH then return seen.milliseconds end
  return 0
end

function envoy_on_request(handle)
  local experts = handle:filterContext():get('experts')
  local headers, now = handle:headers(), handle:timestamp()
  local stream, best, lowest = headers:get('x-moonstack-stream'), nil, nil
  for _, expert in ipairs(experts) do
    local value = expected(stream .. expert, now)
    if lowest == nil or value < lowest then best, lowest = expert, value end
  end
  local seen = began[stream .. best]
  if seen then seen.at = now else began[stream .. best] = { milliseconds = 0, at = now } end
  local metadata = handle:streamInfo():dynamicMetadata()
  metadata:set('moonstack.choice', 'key', stream .. best)
  metadata:set('moonstack.choice', 'at', now)
  headers:replace('x-moonstack-model', best)
  handle:clearRouteCache()
end

function envoy_on_response(handle)
  local choice = handle:streamInfo():dynamicMetadata():get('moonstack.choice')
  if choice == nil then return end
  local now, seen = handle:timestamp(), began[choice.key]
  local took = now - choice.at
  if tonumber(handle:headers():get(':status')) >= 500 then took = math.max(took, FAILED) end
  if seen.milliseconds > 0 then took = SHARE * took + (1 - SHARE) * seen.milliseconds end
  seen.milliseconds, seen.at = math.max(took, 1), now
end
