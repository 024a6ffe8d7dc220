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
// Of DAGs with nodes known only by their cost (mgpu-dag/2 files), what a file
// proves is less (FileRewrite.h): a slice must say that it is one, a kernel
// that can be cut must say so, and only the producer of a collective is cut
// with it. A bucket there is a group of all_reduces that start with one launch,
// each with buffers of its own (ncclGroupStart, ncclGroupEnd): types and
// reductions need not be alike, and a file does not say them.

#include "planner/cost/LatencyEstimator.h"

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
  /// all_reduce: reduce_scatter, then all_gather, with room between them.
  Split,
};
inline constexpr TransformKind allTransforms[] = {
    TransformKind::Algorithm, TransformKind::Copies, TransformKind::Scatter,
    TransformKind::Bucket,    TransformKind::Chunk2, TransformKind::Chunk4,
    TransformKind::Chunk8,    TransformKind::Split};

/// Alternatives of each other, of which at most one is worth having.
inline constexpr TransformKind chunkTransforms[] = {
    TransformKind::Chunk2, TransformKind::Chunk4, TransformKind::Chunk8};
bool isChunk(TransformKind kind);

/// "algorithm", "copies", "scatter", "bucket", "chunk2", "chunk4", "chunk8",
/// "split".
std::string_view toString(TransformKind kind);
std::optional<TransformKind> parseTransform(std::string_view text);
/// What --transforms names: all for "auto", none for "none", else a list with
/// commas, in which "chunk" is all its alternatives. Errors are Usage.
Result<std::vector<TransformKind>> parseTransforms(const std::string &text);

/// Of two all_reduces in a bucket each has at most the first, all together the
/// second. The second is XLA's combine threshold, rounded up (published); the
/// first is assumed: where latency is no longer most of the time.
inline constexpr uint64_t bucketMemberBytes = uint64_t(4) << 20;
inline constexpr uint64_t bucketBytes = uint64_t(32) << 20;

/// What a transform of a DAG file may ask for, and tell.
struct TransformContext {
  /// Frozen durations of what changes are scaled by the ratio of the estimates
  /// after and before; without it they are left out of the DAG, which is
  /// otherwise the same.
  const LatencyEstimator *prices = nullptr;
  /// Gets a line for each reason why candidates were left as they were.
  std::vector<std::string> *left = nullptr;
};

/// How many places `kind` changed; `dag` is checked and normalized.
Result<uint32_t> applyTransform(Dag &dag, TransformKind kind,
                                const TransformContext &context = {});
/// One after the other.
Result<uint32_t> applyTransforms(Dag &dag, std::span<const TransformKind> kinds,
                                 const TransformContext &context = {});

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TRANSFORM_TRANSFORM_H
