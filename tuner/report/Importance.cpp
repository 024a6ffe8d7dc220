// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/report/Importance.h"

#include <algorithm>
#include <cmath>
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

} // namespace mgpu::tuner
