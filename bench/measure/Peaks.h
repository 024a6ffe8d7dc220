// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_MEASURE_PEAKS_H
#define MGPU_BENCH_MEASURE_PEAKS_H

// Measures the best that one thread of this machine can do: the roofs of a
// roofline (Williams, Waterman, Patterson 2009), the memory's by the bytes that
// are touched, as caches have them (Ilic, Pratas, Sousa 2014).

#include <cstdint>
#include <vector>

namespace mgpu::bench {

struct Peaks {
  /// Floating-point operations per microsecond: fused multiply-adds of f32, the
  /// widest vectors of this processor, each counted as two.
  double flopsPerUs = 0;
  struct Roof {
    uint64_t bytes = 0;    ///< touched, again and again
    double bytesPerUs = 0; ///< read and written, of a[i] = b[i] + s * c[i]

    bool operator==(const Roof &) const = default;
  };
  std::vector<Roof> memory; ///< by ascending bytes

  /// The roof over a kernel that touches so many bytes: that of the largest
  /// size measured which is not larger, so that none is too low.
  double bytesPerUs(double touched) const;
  bool operator==(const Peaks &) const = default;
  bool isKnown() const { return flopsPerUs > 0 && !memory.empty(); }
};

/// The best of a few tries of each; about a fifth of a second.
Peaks measurePeaks();

} // namespace mgpu::bench

#endif // MGPU_BENCH_MEASURE_PEAKS_H
