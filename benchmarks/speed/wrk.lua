-- For wrk: each request of a file once, where a file is named: a path, or a path, a tab and a body. In the end the
-- figures as one line of JSON.

function init(arguments)
  if arguments[1] == nil then
    return
  end
  local lines, sent = {}, 0
  for line in io.lines(arguments[1]) do
    lines[#lines + 1] = line
  end
  wrk.headers["Content-Type"] = "application/json"
  function request()
    sent = sent + 1
    local line = lines[sent] or "/the-list-of-requests-is-too-short/"
    local path, body = line:match("^(.-)\t(.*)$")
    return wrk.format("POST", path or line, nil, body)
  end
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"answers": %d, "microseconds": %d, "bytes": %d, "p50": %d, "p99": %d, ' ..
    '"faults": {"connect": %d, "read": %d, "write": %d, "not 2xx": %d, "late": %d}}',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
