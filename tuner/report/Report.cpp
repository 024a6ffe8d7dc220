// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/report/Report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fmt/format.h>
#include <map>
#include <set>

namespace mgpu::tuner {

namespace {

struct Group {
  size_t count = 0;
  double sum = 0, squares = 0;

  void add(double value) {
    ++count;
    sum += value;
    squares += value * value;
  }
  /// Sum of squares about the mean.
  double scatter() const {
    return count ? std::max(squares - sum * sum / double(count), 0.0) : 0;
  }
};

} // namespace

std::vector<ParameterImportance>
importanceOf(const std::vector<ImportanceSample> &samples) {
  std::vector<ParameterImportance> found;
  const size_t count = samples.size();
  if (count < fewestForImportance)
    return found;
  // About the first value, so that squares of a common part do not cancel.
  const double origin = std::log(samples.front().us);
  Group all;
  std::set<std::string> names;
  for (const ImportanceSample &sample : samples) {
    all.add(std::log(sample.us) - origin);
    for (auto &[name, value] : sample.pairs)
      names.insert(name);
  }
  const double total = all.scatter();
  for (const std::string &name : names) {
    std::map<std::string, Group> groups;
    for (const ImportanceSample &sample : samples) {
      auto at = sample.pairs.find(name);
      groups[at == sample.pairs.end() ? "" : at->second].add(
          std::log(sample.us) - origin);
    }
    const size_t k = groups.size();
    if (k < 2 || k >= count) // one value, or each tried once
      continue;
    double within = 0;
    for (auto &[value, group] : groups)
      within += group.scatter();
    double between = std::max(total - within, 0.0);
    double noise = double(k - 1) * within / double(count - k);
    double share = total > 0 ? std::max(between - noise, 0.0) / total : 0;
    found.push_back({name, k, share});
  }
  std::sort(found.begin(), found.end(), [](const auto &a, const auto &b) {
    return a.share != b.share ? a.share > b.share : a.parameter < b.parameter;
  });
  return found;
}

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
