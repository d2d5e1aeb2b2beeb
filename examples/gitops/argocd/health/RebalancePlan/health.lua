-- The health of an object of kontroller.dev, by the conditions that the operator writes. All kinds have the same script.

local function health(status, message)
  return { status = status, message = message }
end

local annotations = obj.metadata.annotations or {}
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local has_ended = status.phase == "Completed" or status.phase == "Failed" or status.phase == "Cancelled"

if not has_ended and (annotations["kontroller.dev/pause"] == "true" or conditions.Paused ~= nil) then
  local said = conditions.Paused or { message = "paused by the annotation kontroller.dev/pause" }
  return health("Suspended", said.message)
end
local ready = conditions.Ready
if ready == nil or status.observedGeneration ~= obj.metadata.generation then
  return health("Progressing", "the operator has not observed this version of the object yet")
end
if conditions.Stalled ~= nil and conditions.Stalled.status == "True" then
  return health("Degraded", conditions.Stalled.message)
end
if conditions.Reconciling ~= nil and conditions.Reconciling.status == "True" then
  return health("Progressing", conditions.Reconciling.message)
end
if ready.status == "True" then
  return health("Healthy", ready.message)
end
if ready.reason == "DryRun" then
  return health("Suspended", ready.message)
end
return health("Progressing", ready.message)
