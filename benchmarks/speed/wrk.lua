-- For wrk: each path of a file once, where a file is named; in the end the figures as one line of JSON.

function init(arguments)
  if arguments[1] == nil then
    return
  end
  local paths, sent = {}, 0
  for path in io.lines(arguments[1]) do
    paths[#paths + 1] = path
  end
  function request()
    sent = sent + 1
    return wrk.format("POST", paths[sent] or "/the-list-of-paths-is-too-short/")
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
