// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Disturbance.h"

#include "support/Clock.h"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits>
#include <sys/resource.h>
#include <unistd.h>

namespace mgpu::bench {

/// The eighth figure of the line "cpu" (proc(5)); 0 where there is none.
static uint64_t readStolenTicks() {
  char text[512];
  int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return 0;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0)
    return 0;
  text[size] = 0;
  unsigned long long stolen = 0;
  return sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) == 1
             ? stolen
             : 0;
}

static uint64_t readPreemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return uint64_t(usage.ru_nivcsw);
}

DisturbanceWatch::DisturbanceWatch()
    : bestSpin(std::numeric_limits<double>::infinity()) {
  for (int k = 0; k < 50; ++k)
    bestSpin = std::min(bestSpin, spin());
}

double DisturbanceWatch::spin() {
  Clock::time_point start = Clock::now();
  // A chain of multiplications: one core, no memory, no luck. About 20 us.
  uint64_t x = uint64_t(start.time_since_epoch().count()) | 1;
  for (int k = 0; k < 12000; ++k)
    x = x * 0x9e3779b97f4a7c15 + 1;
  volatile uint64_t keep = x;
  (void)keep;
  return secondsSince(start);
}

void DisturbanceWatch::begin() {
  stolenBefore = readStolenTicks();
  spinBefore = spin();
  bestSpin = std::min(bestSpin, spinBefore);
  preemptionsBefore = readPreemptions();
}

Disturbance DisturbanceWatch::end() {
  Disturbance found;
  found.preemptions = readPreemptions() - preemptionsBefore;
  double after = spin();
  bestSpin = std::min(bestSpin, after);
  found.slowdown = std::max(spinBefore, after) / bestSpin;
  uint64_t stolen = readStolenTicks();
  found.stolenTicks = stolen > stolenBefore ? stolen - stolenBefore : 0;
  return found;
}

std::string describe(const Disturbance &found) {
  std::string text;
  auto add = [&](std::string part) {
    text += (text.empty() ? "" : ", ") + std::move(part);
  };
  if (found.slowdown > DisturbanceLimits().slowdown)
    add(fmt::format("clock at {:.0f} %", 100 / found.slowdown));
  if (found.stolenTicks)
    add(fmt::format("{} ticks stolen", found.stolenTicks));
  if (found.preemptions)
    add(fmt::format("{} preemption{}", found.preemptions,
                    found.preemptions == 1 ? "" : "s"));
  return text;
}

} // namespace mgpu::bench
