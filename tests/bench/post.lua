-- For wrk: posts one admission review over and over, and says at the end how it went.
local file = assert(io.open(assert(os.getenv("REVIEW"), "REVIEW names a file"), "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = "application/json"

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("figures %d %d %.3f %.3f\n", summary.requests,
    errors.connect + errors.read + errors.write + errors.timeout + errors.status,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
