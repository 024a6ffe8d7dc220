// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/Timeline.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace mgpu::planner {

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

constexpr double left = 150, width = 1200, row = 22, top = 28;
/// By WorkClass, where there is no pipeline; and of what is no part of one.
constexpr const char *classColours[] = {"#4c78a8", "#54a24b", "#f58518"};
constexpr const char *otherColour = "#999";

/// The picture of one plan.
class Picture {
public:
  Picture(const Plan &plan, const Dag &dag,
          const std::vector<MeshDevices> &meshes);
  std::string draw();

private:
  void drawLegend();
  void drawTicks();
  void drawStep(const PlanStep &step);
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

Picture::Picture(const Plan &plan, const Dag &dag,
                 const std::vector<MeshDevices> &meshes)
    : plan(plan), dag(dag), meshes(meshes),
      span(plan.makespanUs > 0 ? plan.makespanUs : 1), scale(width / span) {
  for (const PlanStep &step : plan.steps)
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
  out += fmt::format("<rect x=\"{0:.0f}\" y=\"6\" width=\"10\" height=\"10\" "
                     "fill=\"{1}\"/><text x=\"{2:.0f}\" y=\"15\">{3}</text>\n",
                     keyAt, colour, keyAt + 14, text);
  keyAt += 24 + 7 * double(text.size());
}

void Picture::drawLegend() {
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
    out += fmt::format("<line x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1}\" "
                       "y2=\"{2}\" stroke=\"#ddd\"/><text x=\"{0:.2f}\" "
                       "y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
                       left + tick * k * scale, top, height, height + 14,
                       tick * k);
  out += fmt::format("<text x=\"{}\" y=\"{}\">us</text>\n", left + width + 4,
                     height + 14);
}

void Picture::drawStep(const PlanStep &step) {
  const DagNode &node = dag.node(step.node);
  std::string part;
  if (node.part)
    part = fmt::format(", {} of microbatch {} at stage {}",
                       toString(node.part->kind), node.part->microbatch,
                       node.part->stage);
  for (PlanStream stream : step.streams)
    out += fmt::format(
        "<rect x=\"{:.3f}\" y=\"{}\" width=\"{:.3f}\" height=\"{}\" "
        "fill=\"{}\"><title>{} {} at {:.3f} for {:.3f} us{}</title></rect>\n",
        left + step.startUs * scale, top + row * double(rows[stream]) + 2,
        std::max(step.durationUs * scale, 0.2), row - 4, colourOf(node),
        step.node.value, escape(node.name), step.startUs, step.durationUs,
        part);
}

std::string Picture::draw() {
  out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" "
      "height=\"{:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<title>{}: {:.3f} us, bound {:.3f} us ({})</title>\n",
      left + width + 20, height + 40, escape(plan.scheduler), plan.makespanUs,
      plan.lowerBoundUs, escape(plan.model));
  drawLegend();
  drawTicks();
  for (const auto &[stream, index] : rows)
    out += fmt::format("<text x=\"4\" y=\"{}\">{} stream {}</text>\n",
                       top + row * double(index) + 15, nameOf(stream.device),
                       stream.stream.value);
  for (const PlanStep &step : plan.steps)
    drawStep(step);
  return out + "</svg>\n";
}

} // namespace

std::string toSvg(const Plan &plan, const Dag &dag,
                  const std::vector<MeshDevices> &meshes) {
  return Picture(plan, dag, meshes).draw();
}

} // namespace mgpu::planner
