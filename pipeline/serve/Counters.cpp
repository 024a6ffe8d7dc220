// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/serve/Counters.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <mutex>
#include <string_view>
#include <vector>

namespace mgpu::pipeline::serve {

namespace {

/// The counters that live, in the order in which they were made.
struct Registry {
  std::mutex mutex;
  std::vector<const Counters *> all;
  uint64_t numMade = 0;
};

Registry &registry() {
  static Registry &the = *new Registry; // a program may be closed at exit
  return the;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == '"')
      out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

struct EventText {
  Event event;
  const char *name, *help;
};
constexpr EventText eventTexts[numEvents] = {
    {Event::Replay, "replays", "Replays that ended."},
    {Event::Failure, "failures", "Calls that failed."},
    {Event::DeadlineMiss, "deadline_misses",
     "Steps on the host that were late."},
    {Event::Audit, "audits", "Replays that were audited."},
    {Event::Difference, "audit_differences", "Audits that differed."}};

} // namespace

Counters::Counters(std::string name) {
  Registry &known = registry();
  const std::lock_guard lock(known.mutex);
  theLabel = fmt::format("program=\"{}\",number=\"{}\"", escaped(name),
                         ++known.numMade);
  known.all.push_back(this);
}

Counters::~Counters() {
  Registry &known = registry();
  const std::lock_guard lock(known.mutex);
  std::erase(known.all, this);
}

size_t Counters::bucketOf(uint64_t ns) {
  const int shift = std::max(0, int(std::bit_width(ns)) - 6);
  return size_t(shift) * 32 + size_t(ns >> shift);
}

uint64_t Counters::numTimed() const {
  uint64_t total = 0;
  for (const Count &each : times)
    total += each.load(std::memory_order_relaxed);
  return total;
}

double Counters::quantileUs(double part) const {
  const auto wanted = uint64_t(std::ceil(part * double(numTimed())));
  uint64_t passed = 0;
  for (size_t k = 0; k < times.size(); ++k) {
    passed += times[k].load(std::memory_order_relaxed);
    if (passed == 0 || passed < wanted)
      continue;
    const size_t shift = k < 64 ? 0 : k / 32 - 1;
    const uint64_t first = uint64_t(k - shift * 32) << shift,
                   width = uint64_t(1) << shift;
    return std::min((double(first) + double(width - 1) / 2) * 1e-3, mostUs());
  }
  return 0;
}

std::string metricsText() {
  Registry &known = registry();
  const std::lock_guard lock(known.mutex);
  std::string out;
  auto to = std::back_inserter(out);
  for (const auto &[event, name, help] : eventTexts) {
    fmt::format_to(to,
                   "# HELP mgpu_{0}_total {1}\n# TYPE mgpu_{0}_total counter\n",
                   name, help);
    for (const Counters *each : known.all)
      fmt::format_to(to, "mgpu_{}_total{{{}}} {}\n", name, each->label(),
                     each->of(event));
  }
  out += "# HELP mgpu_replay_seconds Time of a replay.\n"
         "# TYPE mgpu_replay_seconds summary\n";
  for (const Counters *each : known.all) {
    for (double part : {0.5, 0.9, 0.99, 0.999})
      fmt::format_to(to, "mgpu_replay_seconds{{{},quantile=\"{}\"}} {:.9g}\n",
                     each->label(), part, each->quantileUs(part) * 1e-6);
    fmt::format_to(to,
                   "mgpu_replay_seconds_sum{{{0}}} {1:.9g}\n"
                   "mgpu_replay_seconds_count{{{0}}} {2}\n",
                   each->label(), each->totalUs() * 1e-6, each->numTimed());
  }
  return out;
}

} // namespace mgpu::pipeline::serve
