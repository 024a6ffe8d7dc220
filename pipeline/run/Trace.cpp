// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/Trace.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace mgpu::pipeline {

using nlohmann::json;

namespace {

/// Far above any queue of the device's.
constexpr uint32_t hostRow = 1'000'000, rowsOfQueue = 1000;

/// The row of each span: the first of its queue's in which nothing runs yet.
std::vector<uint32_t> rowsOf(const std::vector<capture::NodeSpan> &spans) {
  std::vector<uint32_t> order(spans.size()), rows(spans.size());
  for (uint32_t k = 0; k < order.size(); ++k)
    order[k] = k;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(spans[a].startUs, a) < std::pair(spans[b].startUs, b);
  });
  std::map<uint32_t, std::vector<double>> ends; // by row of a queue
  for (uint32_t k : order) {
    std::vector<double> &of = ends[spans[k].queue];
    auto free = std::find_if(of.begin(), of.end(), [&](double end) {
      return end <= spans[k].startUs;
    });
    rows[k] = spans[k].queue + rowsOfQueue * uint32_t(free - of.begin());
    if (free == of.end())
      of.push_back(spans[k].endUs);
    else
      *free = spans[k].endUs;
  }
  return rows;
}

json event(std::string_view name, size_t process, uint32_t row, double startUs,
           double endUs) {
  return {{"name", name}, {"ph", "X"},     {"pid", process},
          {"tid", row},   {"ts", startUs}, {"dur", endUs - startUs}};
}

} // namespace

std::string traceText(const planner::Dag &dag,
                      const std::vector<capture::TimedReplay> &processes,
                      bool onGpu, std::string_view file) {
  json events = json::array();
  auto name = [&](size_t process, uint32_t row, const std::string &text) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", process},
                      {"tid", row},
                      {"args", {{"name", text}}}});
  };
  for (size_t process = 0; process < processes.size(); ++process) {
    const capture::TimedReplay &of = processes[process];
    std::vector<uint32_t> rows = rowsOf(of.nodes), named = rows;
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
    for (uint32_t row : named)
      name(process, row,
           fmt::format("{} {}{}", onGpu ? "device" : "thread",
                       row % rowsOfQueue,
                       row < rowsOfQueue
                           ? ""
                           : fmt::format(", row {}", row / rowsOfQueue + 1)));
    for (size_t k = 0; k < of.nodes.size(); ++k) {
      const capture::NodeSpan &span = of.nodes[k];
      const planner::DagNode &node = dag.node(span.node);
      std::string devices;
      for (DeviceId device : node.devices)
        devices += (devices.empty() ? "" : ",") + std::to_string(device.value);
      json entry = event(node.name, process, rows[k], span.startUs, span.endUs);
      entry["args"] = {{"devices", devices}, {"source", node.location}};
      events.push_back(std::move(entry));
    }
    if (!of.host.empty())
      name(process, hostRow, "host");
    for (const device::HostSpan &span : of.host)
      events.push_back(event(
          span.activity == device::HostActivity::Launch ? "launch" : "wait",
          process, hostRow, span.startUs, span.endUs));
  }
  const std::string text = json{{"traceEvents", std::move(events)}}.dump(
                               -1, ' ', false, json::error_handler_t::replace) +
                           "\n";
  const size_t end = file.rfind('}');
  if (end == std::string_view::npos)
    return text;
  // The events become one more field of the file's object.
  return fmt::format("{},{}", file.substr(0, end), text.substr(1));
}

} // namespace mgpu::pipeline
