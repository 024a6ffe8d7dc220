// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_MPMD_PIPELINEWORKS_H
#define MGPU_DIALECT_CONVERSION_MPMD_PIPELINEWORKS_H

// Finds the pipeline in a program of fragments: which of them work on
// microbatches, and at which stage of which mesh.

#include "dialect/mpmd/MpmdDialect.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::conversion {

// The orders of the named schedules (docs/schedules.md).

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

/// Attributes of the parts of a backward fragment, as Shardy has them: what
/// other meshes wait for, and the rest.
inline constexpr llvm::StringLiteral keepTransferredName =
    "split_keep_transferred";
inline constexpr llvm::StringLiteral dropTransferredName =
    "split_drop_transferred";

/// The attribute of a fragment that computes again what another one did.
inline constexpr llvm::StringLiteral rematName = "remat";

/// The attribute of a fragment that runs as one with another: in which half.
inline constexpr llvm::StringLiteral halfName = "mpmd.half";

/// The kind as attributes have it.
inline mpmd::WorkKind kindOf(PipelineWork::Kind kind) {
  static_assert(int(PipelineWork::Kind::Weights) ==
                int(mpmd::WorkKind::kWeights));
  return mpmd::WorkKind(kind);
}

/// The first name of a fragment that has an origin.
llvm::StringRef originOf(mpmd::FragmentOp op);

/// Whether another mesh waits for `value`, which a fragment makes, or work of
/// the same microbatch with another name does.
bool isWaitedFor(mlir::OpResult value);
/// Whether the results of a backward fragment are of both kinds.
bool canBeSplit(mpmd::FragmentOp op);

struct Pipeline {
  struct Mesh {
    llvm::StringRef name;
    /// Fragments of one work follow each other in program order.
    std::map<PipelineWork, llvm::SmallVector<mlir::Operation *>> works;
  };
  PipelineSize size;
  llvm::SmallVector<Mesh> meshes; ///< as data goes forward
};

/// A fragment of a named computation with a call counter, its microbatch, is
/// forward work if nothing in it was transposed, and backward work if all of it
/// was transposed once. Stages are counted along the data of a microbatch: one
/// more wherever it goes to another mesh. With `takesWhole` a program without
/// call counters and backward work is one microbatch, else it is no pipeline.
Pipeline findPipeline(mlir::func::FuncOp function, bool takesWhole = false);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_MPMD_PIPELINEWORKS_H
