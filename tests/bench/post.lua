-- For wrk: posts one admission review over and over, and says at the end how it went.
local file = assert(io.open(assert(os.getenv("REVIEW"), "REVIEW names a file"), "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = "application/json"

-- With DISTINCT each review has other images, so that no pod template has been reviewed before.
if os.getenv("DISTINCT") then
  local before, number = wrk.body, 0
  -- Each thread of wrk has a state of its own, so this is another address.
  local thread = tostring({}):match("0x(%x+)")
  request = function()
    number = number + 1
    local images = string.format("registry.example.com/%s/%d/%d/", thread, os.time(), number)
    return wrk.format(nil, nil, nil, (before:gsub("registry%.example%.com/", images)))
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("figures %d %d %.3f %.3f\n", summary.requests,
    errors.connect + errors.read + errors.write + errors.timeout + errors.status,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
