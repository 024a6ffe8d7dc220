// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/Timeline.h"

#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace mgpu::planner {

using Json = nlohmann::json;

static std::string deviceName(DeviceId device) {
  return device.isHost() ? "host" : fmt::format("device {}", device.value);
}

std::string toChromeTrace(const Plan &plan, const Dag &dag) {
  auto processOf = [&](DeviceId device) {
    return device.isHost() ? plan.numDevices : uint32_t(device.value);
  };
  Json events = Json::array();
  std::map<Lane, bool> lanes;
  for (const PlanStep &step : plan.steps)
    for (Lane lane : step.lanes)
      lanes[lane] = true;
  DeviceId named{INT32_MIN};
  for (const auto &[lane, present] : lanes) {
    uint32_t process = processOf(lane.device);
    if (lane.device != named) {
      named = lane.device;
      events.push_back({{"ph", "M"},
                        {"name", "process_name"},
                        {"pid", process},
                        {"args", {{"name", deviceName(lane.device)}}}});
    }
    events.push_back(
        {{"ph", "M"},
         {"name", "thread_name"},
         {"pid", process},
         {"tid", lane.stream.value},
         {"args", {{"name", fmt::format("stream {}", lane.stream.value)}}}});
  }
  for (const PlanStep &step : plan.steps) {
    const DagNode &node = dag.node(step.node);
    Json waits = Json::array();
    for (NodeId wait : step.waits)
      waits.push_back(wait.value);
    for (Lane lane : step.lanes)
      events.push_back({{"ph", "X"},
                        {"name", node.name},
                        {"cat", toString(workClass(node))},
                        {"pid", processOf(lane.device)},
                        {"tid", lane.stream.value},
                        {"ts", step.startUs},
                        {"dur", step.durationUs},
                        {"args",
                         {{"node", step.node.value},
                          {"phase", toString(node.phase)},
                          {"location", node.location},
                          {"waits", waits}}}});
  }
  Json trace = {{"displayTimeUnit", "ns"},
                {"otherData",
                 {{"scheduler", plan.scheduler},
                  {"model", plan.model},
                  {"makespan_us", plan.makespanUs},
                  {"lower_bound_us", plan.lowerBoundUs}}},
                {"traceEvents", std::move(events)}};
  // Names come from the user's file and may be no UTF-8.
  return trace.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

static std::string dotQuote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

std::string toDot(const Plan &plan, const Dag &dag) {
  std::string out = "digraph plan {\n  rankdir=TB;\n  node [shape=box];\n";
  // A node on several lanes is drawn in its first.
  std::map<Lane, std::vector<const PlanStep *>> lanes;
  for (const PlanStep &step : plan.steps)
    lanes[step.lanes.front()].push_back(&step);
  for (const auto &[lane, steps] : lanes) {
    std::string name =
        fmt::format("{} stream {}", deviceName(lane.device), lane.stream.value);
    out += fmt::format("  subgraph {} {{\n    label={};\n",
                       dotQuote("cluster " + name), dotQuote(name));
    for (const PlanStep *step : steps) {
      const DagNode &node = dag.node(step->node);
      out += fmt::format(
          "    n{} [label={}];\n", step->node.value,
          dotQuote(fmt::format("{}: {} ({:.3f} us)", step->node.value,
                               node.name, step->durationUs)));
    }
    out += "  }\n";
  }
  std::map<Lane, NodeId> last;
  for (const PlanStep &step : plan.steps) {
    for (Lane lane : step.lanes) {
      auto [it, first] = last.try_emplace(lane, step.node);
      if (!first)
        out +=
            fmt::format("  n{} -> n{};\n", it->second.value, step.node.value);
      it->second = step.node;
    }
    for (NodeId wait : step.waits)
      out += fmt::format("  n{} -> n{} [style=dashed];\n", wait.value,
                         step.node.value);
  }
  return out + "}\n";
}

} // namespace mgpu::planner
