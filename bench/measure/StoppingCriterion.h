// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_MEASURE_STOPPINGCRITERION_H
#define MGPU_BENCH_MEASURE_STOPPINGCRITERION_H

// When a measurement has enough samples.

#include "bench/measure/Summary.h"

#include <cstdint>

namespace mgpu::bench {

struct StoppingOptions {
  size_t minSamples = 8, maxSamples = 200;
  /// Enough when the 95 % interval of the median reaches no farther than this
  /// share of it to either side.
  double relativeError = 0.01;
  double maxSeconds = 1;
};

enum class Stop : uint8_t { No, Precise, Samples, Time };

/// Asked after each sample. Looks at the interval only at counts a quarter
/// apart: a stop chosen among all counts would pick those whose interval
/// happens to be too narrow.
class StoppingCriterion {
public:
  explicit StoppingCriterion(StoppingOptions options)
      : options(options), nextLook(options.minSamples) {}
  Stop check(std::span<const double> samples, double seconds);

private:
  StoppingOptions options;
  size_t nextLook;
};

} // namespace mgpu::bench

#endif // MGPU_BENCH_MEASURE_STOPPINGCRITERION_H
