// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_MPMD_PIPELINEORDER_H
#define MGPU_DIALECT_CONVERSION_MPMD_PIPELINEORDER_H

// The orders of the named schedules (docs/schedules.md).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::conversion {

enum class PipelineSchedule : uint8_t {
  GPipe,
  OneForwardOneBackward,
  EagerOneForwardOneBackward,
  Interleaved,
  Circular,
  ZeroBubbleH1,
  ZeroBubbleH2,
  DualPipeV,
};

struct NamedSchedule {
  std::string_view name;
  PipelineSchedule schedule;
};
std::span<const NamedSchedule> namedSchedules();
/// None for a name that is not one of them.
std::optional<PipelineSchedule> parsePipelineSchedule(std::string_view name);

struct PipelineSize {
  int64_t meshes = 1, microbatches = 1;
  int64_t stages = 1; ///< the most that a mesh has
  /// Each mesh has two stages, and data goes through the meshes and back, so
  /// that the last one has two that follow each other.
  bool isFolded = false;
};

/// Whether the schedule is of backward work in two parts.
bool splitsBackward(PipelineSchedule schedule);

/// The work of a mesh on one microbatch at one of its stages.
struct PipelineWork {
  /// Weights is the part of backward work that no other mesh waits for, where
  /// it was split.
  enum class Kind : uint8_t { Forward, Backward, Weights };
  Kind kind = Kind::Forward;
  int64_t microbatch = 0;
  int64_t stage = 0; ///< among those of the mesh
  auto operator<=>(const PipelineWork &) const = default;
};

/// Two works that follow each other may run as one: launches of the first half
/// and of the second have no order then.
enum class PipelineHalf : uint8_t { None, First, Second };

struct OrderedWork {
  PipelineWork work;
  PipelineHalf half = PipelineHalf::None;
};

/// Why the schedule has no order for a pipeline of this size; empty if it has.
std::string whyNoOrder(PipelineSchedule schedule, const PipelineSize &size);

/// All works of the mesh at position `mesh`, in order.
std::vector<OrderedWork> pipelineOrder(PipelineSchedule schedule,
                                       const PipelineSize &size, int64_t mesh);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_MPMD_PIPELINEORDER_H
