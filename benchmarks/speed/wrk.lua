-- For wrk: each request of a file once, where a file is named, or again from the first one with a second argument. A
-- line is a method, a path and perhaps a body, with tabs between them. In the end the figures as one line of JSON.

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
    local line = lines[sent + 1] or "GET\t/the-list-of-requests-is-too-short/"
    sent = sent + 1
    if arguments[2] ~= nil and sent == #lines then
      sent = 0
    end
    local method, path, body = line:match("^([^\t]+)\t([^\t]+)\t?(.*)$")
    return wrk.format(method, path, nil, body ~= "" and body or nil)
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
