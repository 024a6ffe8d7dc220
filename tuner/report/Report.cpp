// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/report/Report.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <map>

namespace mgpu::tuner {

double ReportTimeline::exposedUs() const {
  double sum = 0;
  for (const Exposed &each : exposed)
    sum += each.endUs - each.startUs;
  return sum;
}

double ReportTimeline::plannedUs() const {
  double last = 0;
  for (const TimelineStep &step : timeline.steps)
    last = std::max(last, step.plannedEndUs);
  return last;
}

std::vector<Exposed> exposedStretches(const Timeline &timeline) {
  using Stretch = std::pair<double, double>;
  // When each device runs kernels: ascending, and apart from each other.
  std::map<int32_t, std::vector<Stretch>> kernels;
  for (const TimelineStep &step : timeline.steps)
    if (step.kind == planner::WorkClass::Kernel)
      for (planner::PlanStream stream : step.streams)
        kernels[stream.device.value].push_back({step.startUs, step.endUs});
  for (auto &[device, busy] : kernels) {
    std::sort(busy.begin(), busy.end());
    std::vector<Stretch> joined;
    for (const Stretch &each : busy)
      if (!joined.empty() && each.first <= joined.back().second)
        joined.back().second = std::max(joined.back().second, each.second);
      else
        joined.push_back(each);
    busy = std::move(joined);
  }
  std::vector<Exposed> found;
  for (size_t k = 0; k < timeline.steps.size(); ++k) {
    const TimelineStep &step = timeline.steps[k];
    if (step.kind == planner::WorkClass::Kernel)
      continue;
    for (planner::PlanStream stream : step.streams) {
      const int32_t device = stream.device.value;
      if (stream.device.isHost())
        continue; // the host runs no kernels
      double from = step.startUs;
      auto add = [&](double to) {
        if (to > from)
          found.push_back({k, device, from, to});
      };
      for (const auto &[start, end] : kernels[device]) {
        if (end <= from)
          continue;
        if (start >= step.endUs)
          break;
        add(start);
        from = std::max(from, end);
      }
      add(step.endUs);
    }
  }
  return found;
}

std::string timeText(int64_t timeMs) {
  const std::time_t seconds = timeMs / 1000;
  std::tm parts{};
  if (!gmtime_r(&seconds, &parts))
    return "-";
  char text[64];
  size_t length =
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return std::string(text, length);
}

} // namespace mgpu::tuner
