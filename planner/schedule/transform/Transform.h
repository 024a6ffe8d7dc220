// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TRANSFORM_TRANSFORM_H
#define MGPU_PLANNER_SCHEDULE_TRANSFORM_TRANSFORM_H

// Changes to a DAG that leave every bit of its results as it was. Each depends
// on the DAG alone, so that a plan which names the transforms it was made
// after can be read beside the program again; whether one is worth it is for
// the planner to find out.
//
// Buffers keep their numbers. One whose bytes moved elsewhere is left with size
// 0; new ones follow the old. Collectives of a program with a frozen duration
// come back as they are: it is not known of what they would become.
//
// Nodes known only by their cost (mgpu-dag/2 files) are nodes with given costs,
// which say less of themselves: a slice must say that it is one, a kernel that
// can be cut must say so, and what it reads counts as read by each of its
// parts. A bucket of them is a group of all_reduces that start with one launch,
// each with buffers of its own (ncclGroupStart, ncclGroupEnd): types and
// reductions need not be alike, and a file does not say them.

#include "planner/cost/LatencyEstimator.h"
#include "planner/plan/Plan.h"

#include <optional>
#include <span>
#include <vector>

namespace mgpu::planner {

enum class TransformKind : uint8_t {
  /// Each collective by the algorithm and protocol that NCCL's estimate says is
  /// the fastest, where durations rest on that; else all by ring Simple. The
  /// plan records it; the DAG stays as it is.
  Algorithm,
  /// Drops copies whose result nobody reads, copies that repeat an earlier one,
  /// and copies inside a device's memory whose readers can read the source.
  Copies,
  /// all_reduce of which every rank reads no more than its own part:
  /// reduce_scatter.
  Scatter,
  /// Small all_reduces of one communicator that do not depend on each other
  /// become one, their buffers parts of a larger one; nothing is copied.
  Bucket,
  /// A collective and the kernels that make what it sends, or use what it
  /// receives, as 2, 4 or 8 of each: part k of the collective needs part k of
  /// the kernels. So does what leads to them, while part follows part. Kernels
  /// are cut where the blocks of their parts write apart (blockSteps).
  Chunk2,
  Chunk4,
  Chunk8,
  /// Cuts with a number for each group of collectives that share kernels
  /// (Transform::counts). Without numbers it changes nothing: ChunkCounts.h
  /// finds them.
  Chunk,
  /// all_reduce: reduce_scatter, then all_gather, with room between them.
  Split,
  /// Changes what the schedule is free to do (SchedulePolicy); the DAG stays
  /// as it is.
  Order,
  Early,
  NoFork,
};
inline constexpr TransformKind allTransforms[] = {
    TransformKind::Algorithm, TransformKind::Copies, TransformKind::Scatter,
    TransformKind::Bucket,    TransformKind::Chunk2, TransformKind::Chunk4,
    TransformKind::Chunk8,    TransformKind::Chunk,  TransformKind::Split,
    TransformKind::Order,     TransformKind::Early,  TransformKind::NoFork};

/// The schedule policy that a transform is; null of those that change the DAG.
bool SchedulePolicy::*policyFlagOf(TransformKind kind);

/// One number of chunks for all collectives: alternatives of each other, of
/// which at most one is worth having.
inline constexpr TransformKind chunkTransforms[] = {
    TransformKind::Chunk2, TransformKind::Chunk4, TransformKind::Chunk8};
bool isChunk(TransformKind kind);
/// Into how many parts the transform cuts: 2, 4 or 8, or 1 if it does not.
uint32_t numChunks(TransformKind kind);

/// A transform as a plan names it.
struct Transform {
  TransformKind kind = TransformKind::Copies;
  /// Chunk: for each group of chunkGroups(), into how many parts (1: none) its
  /// collectives and their kernels are cut.
  std::vector<uint32_t> counts;
  Transform(TransformKind kind, std::vector<uint32_t> counts = {})
      : kind(kind), counts(std::move(counts)) {}
  auto operator<=>(const Transform &) const = default;
};
inline constexpr uint32_t maxChunks = 64;

/// "algorithm", "copies", "scatter", "bucket", "chunk2", "chunk4", "chunk8",
/// "chunk", "split", "order", "early", "nofork".
std::string_view toString(TransformKind kind);
/// The same; of Chunk with its numbers, "chunk:4/1/2".
std::string toString(const Transform &transform);
std::optional<Transform> parseTransform(std::string_view text);
/// The choice that --transforms names.
struct TransformChoice {
  std::vector<Transform> transforms;
  SchedulePolicy
      schedulePolicy; ///< the schedule's; those of `transforms` among them
  /// Whether the text says anything of schedule policies.
  bool namesPolicy = false;
};
/// "auto": all but one number of chunks for all; "none": none, and a schedule
/// that is free; else a list with commas. "-NAME" in it takes away from what
/// stands before it, from "auto" where the list begins with that. A list that
/// begins with a name has the schedule policies it names alone, or all of them
/// if it names none. Errors are Usage.
Result<TransformChoice> parseTransforms(const std::string &text);

/// Collectives that can be cut at least in two, those that share kernels
/// together.
std::vector<std::vector<NodeId>> chunkGroups(const Dag &dag);

/// The most bytes of one all_reduce in a bucket, and of all of them together.
/// The latter is XLA's combine threshold, rounded up (published). The former is
/// assumed: beyond it latency is the smaller part of the time.
inline constexpr uint64_t bucketMemberBytes = uint64_t(4) << 20;
inline constexpr uint64_t bucketBytes = uint64_t(32) << 20;

/// A what-if about nodes of some names: `*` is any letters, or none.
struct OpFactor {
  std::string pattern;
  double factor = 1;
};
/// Multiplies the time that a node takes, frozen or not.
void scaleTime(DagNode &node, double factor);

/// The questions that a transform may ask, and where it reports.
struct TransformContext {
  /// Frozen durations of what changes are scaled by the ratio of the estimates
  /// after and before; without it they are left out of the DAG, which is
  /// otherwise the same.
  const LatencyEstimator *prices = nullptr;
  /// Gets a line for each reason why candidates were left as they were.
  std::vector<std::string> *left = nullptr;
  /// Nodes that the transform makes and that one of these names take so many
  /// times as long, but those made of one that it named already.
  std::span<const OpFactor> ops = {};
};

/// The result of a transform; without changes there is no DAG.
struct Transformed {
  uint32_t changes = 0; ///< places
  std::optional<Dag> dag;
};
/// `dag` is checked and normalized. Invalid where the numbers of chunks are of
/// another DAG.
Result<Transformed> transformed(const Dag &dag, const Transform &transform,
                                const TransformContext &context = {});
/// Applies it in place; returns how many places it changed.
Result<uint32_t> applyTransform(Dag &dag, const Transform &transform,
                                const TransformContext &context = {});
/// One after the other.
Result<uint32_t> applyTransforms(Dag &dag, std::span<const TransformKind> kinds,
                                 const TransformContext &context = {});

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TRANSFORM_TRANSFORM_H
