-- For wrk: the requests of a file, where one is named, each once; in the end the figures as one line of JSON.
-- A line of the file has method, path, token and entity tag, with tabs between them.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  statuses = ""
  if arguments[1] == nil then
    return
  end
  local lines, sent, counts = {}, 0, {}
  for line in io.lines(arguments[1]) do
    lines[#lines + 1] = line
  end
  function request()
    sent = sent + 1
    local method, path, token, tag = (lines[sent] or lines[#lines]):match("([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)")
    local headers = { Authorization = "Bearer " .. token }
    if tag ~= "" then
      headers["If-None-Match"] = tag
    end
    return wrk.format(method, path, headers)
  end
  function response(status)
    counts[status] = (counts[status] or 0) + 1
    received = (received or 0) + 1
    if received >= #lines then
      statuses = ""
      for each, count in pairs(counts) do
        statuses = statuses .. string.format(', "%d": %d', each, count)
      end
      wrk.thread:stop()
    end
  end
end
