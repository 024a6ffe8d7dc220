// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TRANSFORM_TRANSFORM_H
#define MGPU_PLANNER_SCHEDULE_TRANSFORM_TRANSFORM_H

// Changes to a DAG that leave every bit of its results as it was. Each depends
// on the DAG alone, so that a plan which names the transforms it was made
// after can be read beside the program again; whether one is worth it is for
// the planner to find out.
//
// Buffers keep their numbers. One whose bytes moved elsewhere is left with size
// 0; new ones follow the old. DAGs with nodes known only by their cost come
// back as they are: what their nodes touch is not known. So do collectives with
// a frozen duration: it is not known of what they would become.

#include "planner/dag/Dag.h"

#include <optional>
#include <span>
#include <vector>

namespace mgpu::planner {

enum class TransformKind : uint8_t {
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
    TransformKind::Copies, TransformKind::Scatter, TransformKind::Bucket,
    TransformKind::Chunk2, TransformKind::Chunk4,  TransformKind::Chunk8,
    TransformKind::Split};

/// Alternatives of each other, of which at most one is worth having.
inline constexpr TransformKind chunkTransforms[] = {
    TransformKind::Chunk2, TransformKind::Chunk4, TransformKind::Chunk8};
bool isChunk(TransformKind kind);
/// Of how many parts: 2, 4 or 8 of those, else 1.
uint32_t numChunks(TransformKind kind);

/// "copies", "scatter", "bucket", "chunk2", "chunk4", "chunk8", "split".
std::string_view toString(TransformKind kind);
std::optional<TransformKind> parseTransform(std::string_view text);

/// Of two all_reduces in a bucket each has at most the first, all together the
/// second. The second is XLA's combine threshold, rounded up (published); the
/// first is assumed: where latency is no longer most of the time.
inline constexpr uint64_t bucketMemberBytes = uint64_t(4) << 20;
inline constexpr uint64_t bucketBytes = uint64_t(32) << 20;

/// How many places `kind` changed; `dag` is checked and normalized.
Result<uint32_t> applyTransform(Dag &dag, TransformKind kind);
/// One after the other.
Result<uint32_t> applyTransforms(Dag &dag,
                                 std::span<const TransformKind> kinds);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TRANSFORM_TRANSFORM_H
