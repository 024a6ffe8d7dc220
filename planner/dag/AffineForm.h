// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_AFFINEFORM_H
#define MGPU_PLANNER_DAG_AFFINEFORM_H

// constant + sum(coefficient * counter), the counters being thread ids, block
// ids, loop counters, and quotients and remainders of such sums, each running
// over 0..size-1.

#include "support/Types.h"

#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mgpu {
class JsonFields;
} // namespace mgpu

namespace mgpu::planner {

struct AffineForm {
  int64_t constant = 0;
  std::vector<std::pair<uint32_t, int64_t>> terms; ///< by counter

  bool isConstant() const { return terms.empty(); }
  void add(const AffineForm &other, int64_t factor = 1);
  bool operator==(const AffineForm &) const = default;
};

/// The counters of a launch's forms: thread ids x, y, z, block ids x, y, z, and
/// those added to them.
class AffineCounters {
public:
  AffineCounters() = default;
  AffineCounters(Dim3 grid, Dim3 block)
      : sizes{block.x, block.y, block.z, grid.x, grid.y, grid.z} {}

  /// Smallest and largest value over all counters.
  std::pair<int64_t, int64_t> range(const AffineForm &form) const;
  int64_t sizeOf(uint32_t counter) const { return sizes[counter]; }
  /// The axis of thread ids, or of block ids, that a counter is, if it is one.
  static std::optional<unsigned> threadAxisOf(uint32_t counter);
  static std::optional<unsigned> blockAxisOf(uint32_t counter);
  uint32_t addCounter(int64_t size);
  /// A form of the counter and others that is always 0, where the counter is a
  /// quotient or a remainder; else null.
  const AffineForm *tieOf(uint32_t counter) const;
  /// Whether all counters of the form may have any value together.
  bool isFree(const AffineForm &form) const;
  /// Whether it has no loop counters, but ids and what is divided of them.
  bool isOfIds(const AffineForm &form) const;
  /// The value in the thread whose ids these are, where loop counters are 0.
  int64_t valueAt(const AffineForm &form, std::span<const int64_t> ids) const;
  /// The value of `form` in a thread of the first block.
  int64_t valueAt(const AffineForm &form, Dim3 thread) const {
    return valueAt(form, std::array<int64_t, 6>{thread.x, thread.y, thread.z});
  }
  /// Adds factor * form to `sum`. False, and `sum` is then of no use, where a
  /// value could pass 2^58: the byte addresses made of it must fit int64_t.
  bool addScaled(AffineForm &sum, const AffineForm &form, int64_t factor) const;
  bool operator==(const AffineCounters &) const = default;

  /// Whether sizes and ties are those that an importer makes, and a form is of
  /// them, so that no sum of its terms overflows: of a file that may hold
  /// anything.
  bool areCountable() const;
  bool areCountable(const AffineForm &form) const;

protected:
  static constexpr uint32_t firstBlockCounter = 3;
  /// Whether every value of factor * form, and so each of its parts, is of
  /// `width` bits.
  bool fitsBits(const AffineForm &form, int64_t factor, unsigned width) const;

  std::vector<int64_t> sizes;
  std::map<uint32_t, AffineForm> ties; ///< by counter

private:
  friend void fields(JsonFields &f, AffineCounters &counters);
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_AFFINEFORM_H
