// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/Timeline.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

namespace mgpu::planner {

using Json = nlohmann::json;

static std::string deviceName(DeviceId device) {
  return device.isHost() ? "host" : fmt::format("device {}", device.value);
}

namespace {
/// A part of the run as a trace shows it, of a rolled loop one trip.
struct PartSpan {
  PlanPart part = PlanPart::Replay;
  double begin = 0, end = 0;
};

/// The parts that have steps, one after the other.
std::vector<PartSpan> partsOf(const Plan &plan, const Dag &dag) {
  std::vector<PartSpan> parts;
  for (const PlanStep &step : plan.steps) {
    const PlanPart part = partOf(dag.node(step.node).phase);
    if (parts.empty() || parts.back().part != part) {
      const double begin = parts.empty() ? 0 : parts.back().end;
      parts.push_back({part, begin, begin});
    }
    PartSpan &last = parts.back();
    last.end = std::max(last.end, last.begin + step.startUs + step.durationUs);
  }
  return parts;
}

void addParts(Json &events, const std::vector<PartSpan> &parts,
              uint32_t process) {
  events.push_back({{"ph", "M"},
                    {"name", "process_name"},
                    {"pid", process},
                    {"args", {{"name", "phases"}}}});
  for (const PartSpan &each : parts)
    events.push_back({{"ph", "X"},
                      {"name", toString(each.part)},
                      {"cat", "phase"},
                      {"pid", process},
                      {"tid", 0},
                      {"ts", each.begin},
                      {"dur", each.end - each.begin}});
}
} // namespace

std::string toChromeTrace(const Plan &plan, const Dag &dag) {
  auto processOf = [&](DeviceId device) {
    return device.isHost() ? plan.numDevices : uint32_t(device.value);
  };
  Json events = Json::array();
  std::map<PlanStream, bool> streams;
  for (const PlanStep &step : plan.steps)
    for (PlanStream stream : step.streams)
      streams[stream] = true;
  DeviceId named{INT32_MIN};
  for (const auto &[stream, present] : streams) {
    uint32_t process = processOf(stream.device);
    if (stream.device != named) {
      named = stream.device;
      events.push_back({{"ph", "M"},
                        {"name", "process_name"},
                        {"pid", process},
                        {"args", {{"name", deviceName(stream.device)}}}});
    }
    events.push_back(
        {{"ph", "M"},
         {"name", "thread_name"},
         {"pid", process},
         {"tid", stream.stream.value},
         {"args", {{"name", fmt::format("stream {}", stream.stream.value)}}}});
  }
  const std::vector<PartSpan> parts = partsOf(plan, dag);
  if (parts.size() > 1)
    addParts(events, parts, plan.numDevices + 1);
  for (const PlanStep &step : plan.steps) {
    const DagNode &node = dag.node(step.node);
    const auto in =
        std::find_if(parts.begin(), parts.end(), [&](const PartSpan &each) {
          return each.part == partOf(node.phase);
        });
    Json waits = Json::array();
    for (NodeId wait : step.waits)
      waits.push_back(wait.value);
    for (PlanStream stream : step.streams)
      events.push_back({{"ph", "X"},
                        {"name", node.name},
                        {"cat", toString(workClass(node))},
                        {"pid", processOf(stream.device)},
                        {"tid", stream.stream.value},
                        {"ts", in->begin + step.startUs},
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
                  {"load_us", plan.loadUs},
                  {"replay_us", plan.makespanUs},
                  {"replay_bound_us", plan.lowerBoundUs},
                  {"fetch_us", plan.fetchUs}}},
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
  // A node on several streams is drawn in its first.
  std::map<PlanStream, std::vector<const PlanStep *>> streams;
  for (const PlanStep &step : plan.steps)
    streams[step.streams.front()].push_back(&step);
  for (const auto &[stream, steps] : streams) {
    std::string name = fmt::format("{} stream {}", deviceName(stream.device),
                                   stream.stream.value);
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
  std::map<PlanStream, NodeId> last;
  for (const PlanStep &step : plan.steps) {
    for (PlanStream stream : step.streams) {
      auto [it, first] = last.try_emplace(stream, step.node);
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

bool KindOrigins::isMixed() const {
  return std::count(nodes.begin(), nodes.end(), 0u) + 1 < long(nodes.size());
}

static std::string kindOf(const DagNode &node) {
  if (auto *call = std::get_if<CollectiveCall>(&node.work))
    return std::string(toString(call->kind));
  if (auto *call = std::get_if<OpaqueCall>(&node.work);
      call && call->isCollective)
    return std::string(toString(call->kind));
  return workClass(node) == WorkClass::Copy ? "copy"
         : node.isMatmul                    ? "matrix product"
                                            : "kernel";
}

std::vector<KindOrigins> originsOf(const Plan &plan, const Dag &dag) {
  std::vector<KindOrigins> kinds;
  for (const PlanStep &step : plan.steps) {
    const std::string kind = kindOf(dag.node(step.node));
    auto at = std::ranges::find(kinds, kind, &KindOrigins::kind);
    if (at == kinds.end())
      at = kinds.insert(kinds.end(), {kind});
    ++at->nodes[size_t(step.origin)];
  }
  return kinds;
}

std::vector<std::string> originLines(const Plan &plan, const Dag &dag) {
  std::vector<std::string> lines;
  for (const KindOrigins &each : originsOf(plan, dag)) {
    std::vector<std::string> counts;
    for (Origin origin : allOrigins)
      if (const uint32_t nodes = each.nodes[size_t(origin)])
        counts.push_back(fmt::format("{} {}", nodes, toString(origin)));
    lines.push_back(fmt::format(
        "{}: {}{}", each.kind, fmt::join(counts, ", "),
        each.isMixed() ? ": mixed, so which of them is longer may be the "
                         "doing of where their times come from"
                       : ""));
  }
  return lines;
}

} // namespace mgpu::planner
