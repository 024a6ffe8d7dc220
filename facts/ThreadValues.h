// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_FACTS_THREADVALUES_H
#define MGPU_FACTS_THREADVALUES_H

#include "facts/AffineEvaluator.h"

#include <memory>

namespace mgpu::facts {

/// Thread ids x, y, z, then block ids.
using ThreadIds = std::array<int64_t, 6>;

/// The values of a kernel in each thread of a launch, where they follow from
/// the thread's ids and from constants alone.
class ThreadValues {
public:
  /// Looks at the first threads, `most` of them at most.
  ThreadValues(AffineEvaluator &affine, int64_t most);

  int64_t numThreads() const { return count; }
  ThreadIds idsOf(int64_t thread) const;
  /// The value in each thread, in order of their numbers; empty where it
  /// follows from anything else.
  const std::vector<mlir::Attribute> &of(mlir::Value value);

private:
  std::vector<mlir::Attribute> find(mlir::Value value);

  AffineEvaluator &affine;
  ThreadIds sizes;
  int64_t count = 1;
  /// References stay valid when further values are computed.
  llvm::DenseMap<mlir::Value, std::unique_ptr<std::vector<mlir::Attribute>>>
      known;
};

} // namespace mgpu::facts

#endif // MGPU_FACTS_THREADVALUES_H
