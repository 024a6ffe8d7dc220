// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/Timeline.h"

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

std::string toSvg(const Plan &plan, const Dag &dag) {
  constexpr double left = 110, width = 1200, row = 22, top = 28;
  static constexpr const char *colours[] = {"#4c78a8", "#54a24b", "#f58518"};
  std::map<PlanStream, size_t> rows;
  for (const PlanStep &step : plan.steps)
    for (PlanStream stream : step.streams)
      rows.try_emplace(stream, 0);
  size_t count = 0;
  for (auto &[stream, index] : rows)
    index = count++;
  double span = plan.makespanUs > 0 ? plan.makespanUs : 1;
  double scale = width / span, height = top + row * double(count);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" "
      "height=\"{:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<title>{}: {:.3f} us, bound {:.3f} us ({})</title>\n",
      left + width + 20, height + 40, escape(plan.scheduler), plan.makespanUs,
      plan.lowerBoundUs, escape(plan.model));
  auto append = [&out](const std::string &text) { out += text; };
  for (int k = 0; k < 3; ++k)
    append(fmt::format("<rect x=\"{0}\" y=\"6\" width=\"10\" height=\"10\" "
                       "fill=\"{1}\"/><text x=\"{2}\" y=\"15\">{3}</text>\n",
                       left + 90 * k, colours[k], left + 90 * k + 14,
                       toString(WorkClass(k))));
  double tick = tickOf(span);
  for (int k = 0; tick * k <= span; ++k)
    append(fmt::format("<line x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1}\" "
                       "y2=\"{2}\" stroke=\"#ddd\"/><text x=\"{0:.2f}\" "
                       "y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
                       left + tick * k * scale, top, height, height + 14,
                       tick * k));
  append(fmt::format("<text x=\"{}\" y=\"{}\">us</text>\n", left + width + 4,
                     height + 14));
  for (const auto &[stream, index] : rows) {
    std::string name = stream.device.isHost()
                           ? std::string("host")
                           : fmt::format("device {}", stream.device.value);
    append(fmt::format("<text x=\"4\" y=\"{}\">{} stream {}</text>\n",
                       top + row * double(index) + 15, name,
                       stream.stream.value));
  }
  for (const PlanStep &step : plan.steps) {
    const DagNode &node = dag.node(step.node);
    for (PlanStream stream : step.streams)
      append(fmt::format(
          "<rect x=\"{:.3f}\" y=\"{}\" width=\"{:.3f}\" height=\"{}\" "
          "fill=\"{}\"><title>{} {} at {:.3f} for {:.3f} us</title></rect>\n",
          left + step.startUs * scale, top + row * double(rows[stream]) + 2,
          std::max(step.durationUs * scale, 0.2), row - 4,
          colours[size_t(workClass(node))], step.node.value, escape(node.name),
          step.startUs, step.durationUs));
  }
  return out + "</svg>\n";
}

} // namespace mgpu::planner
