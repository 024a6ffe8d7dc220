// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_ROWORDER_H
#define MGPU_TESTS_CONFORMANCE_ROWORDER_H

// The order in which threads that share a row combine its elements, as
// docs/numerics.md states it.

#include <cstddef>
#include <vector>

namespace mgpu::conformance {

/// So many parts of a row: part p has the elements p, p + parts, ...
struct RowOrder {
  size_t parts;
  /// Neighbouring parts are combined up to 32, and those one after the other;
  /// if not, all of them one after the other.
  bool inPairs;
};

template <typename At, typename Combine>
float inStatedOrder(size_t length, RowOrder order, float neutral, At at,
                    Combine combine) {
  std::vector<float> parts(order.parts, neutral);
  for (size_t k = 0; k < length; ++k)
    parts[k % order.parts] = combine(parts[k % order.parts], at(k));
  const size_t together = order.inPairs ? 32 : 1;
  for (size_t step = 1; step < together; step *= 2)
    for (size_t k = 0; k < order.parts; k += 2 * step)
      parts[k] = combine(parts[k], parts[k + step]);
  float all = parts[0];
  for (size_t k = together; k < order.parts; k += together)
    all = combine(all, parts[k]);
  return all;
}

template <typename At>
float sumOf(size_t length, RowOrder order, At at) {
  return inStatedOrder(length, order, -0.0f, at,
                       [](float a, float b) { return a + b; });
}

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_ROWORDER_H
