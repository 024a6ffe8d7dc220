// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/Timeline.h"

#include "support/Units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

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

static std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else // names come from the user's file and may be no UTF-8
      out += byte < 0x20 || byte >= 0x7f ? '?' : c;
  }
  return out;
}

/// 1, 2 or 5 times a power of ten: at most ten ticks over `span`.
static double tickOf(double span) {
  double power = std::pow(10, std::floor(std::log10(span / 10)));
  for (double factor : {1.0, 2.0, 5.0})
    if (span / (power * factor) <= 10)
      return power * factor;
  return power * 10;
}

namespace {

constexpr double left = 150, width = 1200, right = 30, row = 22, top = 50;
/// About the width of a letter.
constexpr double letter = 6.8;
/// By WorkClass, where there is no pipeline; and of what is no part of one.
constexpr const char *classColours[] = {"#4c78a8", "#54a24b", "#f58518"};
constexpr const char *otherColour = "#999";

// A page that shows the picture, or the viewer, says whether it is dark.
constexpr const char *style = R"(<style>
svg { background: #fff; } text { fill: #1b2430; } .soft { fill: #5b6775; }
.grid { stroke: #dfe3e8; } .bound { stroke: #d03b4f; stroke-dasharray: 5 3; }
.within { fill: #fff; pointer-events: none; }
@media (prefers-color-scheme: dark) {
svg { background: #12161c; } text { fill: #e6eaf0; } .soft { fill: #9aa7b5; }
.grid { stroke: #303945; } .bound { stroke: #f0697b; } .within { fill: #fff; }
}
</style>
)";

/// The picture of one plan.
class Picture {
public:
  Picture(const Plan &plan, const Dag &dag,
          const std::vector<MeshDevices> &meshes);
  std::string draw();

private:
  void drawLegend();
  void drawTicks();
  void drawBound();
  void drawStep(const PlanStep &step);
  bool isDrawn(const PlanStep &step) const {
    return timesInReplay(dag, dag.node(step.node).phase) > 0;
  }
  void key(const std::string &colour, std::string_view text);
  std::string colourOf(const DagNode &node) const;
  std::string nameOf(DeviceId device) const;

  const Plan &plan;
  const Dag &dag;
  const std::vector<MeshDevices> &meshes;
  std::map<PlanStream, size_t> rows;
  uint32_t microbatches = 0; ///< of the pipeline; 0: it is none
  double span, scale, height;
  double keyAt = left; ///< where the legend goes on
  std::string out;
};

/// The end of what is drawn, which of a rolled loop is one trip.
static double replayEnd(const Plan &plan, const Dag &dag) {
  double end = 0;
  for (const PlanStep &step : plan.steps)
    if (timesInReplay(dag, dag.node(step.node).phase) > 0)
      end = std::max(end, step.startUs + step.durationUs);
  return end > 0 ? end : 1;
}

Picture::Picture(const Plan &plan, const Dag &dag,
                 const std::vector<MeshDevices> &meshes)
    : plan(plan), dag(dag), meshes(meshes), span(replayEnd(plan, dag)),
      scale(width / span) {
  for (const PlanStep &step : plan.steps)
    if (isDrawn(step))
      for (PlanStream stream : step.streams)
        rows.try_emplace(stream, 0);
  size_t count = 0;
  for (auto &[stream, index] : rows)
    index = count++;
  height = top + row * double(count);
  for (const DagNode &node : dag.nodes)
    if (node.part)
      microbatches = std::max(microbatches, node.part->microbatch + 1);
}

/// A microbatch has a hue; forward work is light and the rest darker.
std::string microbatchColour(uint32_t microbatch, uint32_t count,
                             PipelinePart::Kind kind) {
  static constexpr int lightness[] = {72, 52, 36};
  return fmt::format("hsl({:.0f},65%,{}%)", 360.0 * microbatch / count,
                     lightness[size_t(kind)]);
}

std::string Picture::colourOf(const DagNode &node) const {
  if (node.part)
    return microbatchColour(node.part->microbatch, microbatches,
                            node.part->kind);
  return microbatches > 0 ? otherColour : classColours[size_t(workClass(node))];
}

std::string Picture::nameOf(DeviceId device) const {
  if (device.isHost())
    return "host";
  for (const MeshDevices &mesh : meshes)
    if (uint32_t(device.value) - mesh.first < mesh.count)
      return fmt::format("{} device {}", escape(mesh.name), device.value);
  return fmt::format("device {}", device.value);
}

void Picture::key(const std::string &colour, std::string_view text) {
  out += fmt::format("<rect x=\"{0:.0f}\" y=\"26\" width=\"10\" height=\"10\" "
                     "fill=\"{1}\"/><text x=\"{2:.0f}\" y=\"35\">{3}</text>\n",
                     keyAt, colour, keyAt + 14, text);
  keyAt += 24 + 7 * double(text.size());
}

void Picture::drawLegend() {
  const std::string once = plan.onceLine();
  out += fmt::format("<text x=\"{:.0f}\" y=\"15\">{}{}</text>\n", left,
                     escape(plan.verdictLine()),
                     once.empty() ? "" : "; not drawn: " + once);
  if (microbatches > 0) {
    for (auto kind : {PipelinePart::Kind::Forward, PipelinePart::Kind::Backward,
                      PipelinePart::Kind::Weights})
      key(microbatchColour(0, microbatches, kind), toString(kind));
    constexpr uint32_t mostKeys = 16;
    for (uint32_t k = 0; k < std::min(microbatches, mostKeys); ++k)
      key(microbatchColour(k, microbatches, PipelinePart::Kind::Forward),
          std::to_string(k));
    key(otherColour, "other work");
    return;
  }
  for (size_t k = 0; k < std::size(classColours); ++k)
    key(classColours[k], toString(WorkClass(k)));
}

void Picture::drawTicks() {
  const double tick = tickOf(span);
  for (int k = 0; tick * k <= span; ++k)
    out += fmt::format("<line class=\"grid\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" "
                       "y1=\"{1}\" y2=\"{2}\"/><text class=\"soft\" "
                       "x=\"{0:.2f}\" y=\"{3}\" text-anchor=\"middle\">{4:g}"
                       "</text>\n",
                       left + tick * k * scale, top, height, height + 14,
                       tick * k);
  out += fmt::format("<text class=\"soft\" x=\"{}\" y=\"{}\" "
                     "text-anchor=\"middle\">microseconds, predicted</text>\n",
                     left + width / 2, height + 30);
}

/// No plan ends before this line.
void Picture::drawBound() {
  if (plan.lowerBoundUs <= 0 || dag.loop.trips > 1)
    return;
  const double x = left + std::min(plan.lowerBoundUs, span) * scale;
  out += fmt::format("<line class=\"bound\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" "
                     "y1=\"{1}\" y2=\"{2}\"/><text x=\"{0:.2f}\" y=\"{3}\" "
                     "text-anchor=\"end\">bound {4}</text>\n",
                     x, top - 8, height, top - 12,
                     durationText(plan.lowerBoundUs));
}

void Picture::drawStep(const PlanStep &step) {
  const DagNode &node = dag.node(step.node);
  const std::string name = escape(node.name);
  std::string part;
  if (node.part)
    part = fmt::format(", {} of microbatch {} at stage {}",
                       toString(node.part->kind), node.part->microbatch,
                       node.part->stage);
  const double x = left + step.startUs * scale,
               wide = std::max(step.durationUs * scale, 0.2);
  for (PlanStream stream : step.streams) {
    const double y = top + row * double(rows[stream]);
    out += fmt::format(
        "<rect x=\"{:.3f}\" y=\"{}\" width=\"{:.3f}\" height=\"{}\" "
        "fill=\"{}\"><title>{} {} at {:.3f} for {:.3f} us{}</title></rect>\n",
        x, y + 2, wide, row - 4, colourOf(node), step.node.value, name,
        step.startUs, step.durationUs, part);
    if (wide > letter * double(name.size()) + 8)
      out += fmt::format("<text class=\"within\" x=\"{:.3f}\" y=\"{}\" "
                         "text-anchor=\"middle\">{}</text>\n",
                         x + wide / 2, y + 15, name);
  }
}

std::string Picture::draw() {
  const double fullWidth = left + width + right, fullHeight = height + 40;
  out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" width=\"100%\" style=\"max-width:{0:.0f}px\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n"
      "<title>{2}: {3:.3f} us, bound {4:.3f} us ({5})</title>\n{6}",
      fullWidth, fullHeight, escape(plan.scheduler), plan.makespanUs,
      plan.lowerBoundUs, escape(plan.model), style);
  drawLegend();
  drawTicks();
  for (const auto &[stream, index] : rows)
    out += fmt::format("<text x=\"4\" y=\"{}\">{}, stream {}</text>\n",
                       top + row * double(index) + 15, nameOf(stream.device),
                       stream.stream.value);
  for (const PlanStep &step : plan.steps)
    if (isDrawn(step))
      drawStep(step);
  drawBound();
  return out + "</svg>\n";
}

} // namespace

std::string toSvg(const Plan &plan, const Dag &dag,
                  const std::vector<MeshDevices> &meshes) {
  return Picture(plan, dag, meshes).draw();
}

} // namespace mgpu::planner
