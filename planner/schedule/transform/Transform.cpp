// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Transform.h"

#include "planner/schedule/transform/Rewrite.h"

#include <algorithm>

namespace mgpu::planner {

std::string_view toString(TransformKind kind) {
  switch (kind) {
  case TransformKind::Copies:
    return "copies";
  case TransformKind::Scatter:
    return "scatter";
  case TransformKind::Bucket:
    return "bucket";
  case TransformKind::Chunk2:
    return "chunk2";
  case TransformKind::Chunk4:
    return "chunk4";
  case TransformKind::Chunk8:
    return "chunk8";
  case TransformKind::Split:
    return "split";
  }
  return "unknown";
}

std::optional<TransformKind> parseTransform(std::string_view text) {
  for (TransformKind kind : allTransforms)
    if (toString(kind) == text)
      return kind;
  return std::nullopt;
}

bool isChunk(TransformKind kind) {
  return std::find(std::begin(chunkTransforms), std::end(chunkTransforms),
                   kind) != std::end(chunkTransforms);
}

uint32_t numChunks(TransformKind kind) {
  switch (kind) {
  case TransformKind::Chunk2:
    return 2;
  case TransformKind::Chunk4:
    return 4;
  case TransformKind::Chunk8:
    return 8;
  default:
    return 1;
  }
}

Result<uint32_t> applyTransform(Dag &dag, TransformKind kind) {
  bool isKnown =
      std::none_of(dag.nodes.begin(), dag.nodes.end(), [](const DagNode &node) {
        return std::holds_alternative<OpaqueCall>(node.work);
      });
  if (!isKnown)
    return 0;
  uint32_t changes = 0;
  switch (kind) {
  case TransformKind::Copies:
    changes = dropCopies(dag);
    break;
  case TransformKind::Scatter:
    changes = scatterReduces(dag);
    break;
  case TransformKind::Bucket:
    changes = bucketReduces(dag);
    break;
  case TransformKind::Chunk2:
  case TransformKind::Chunk4:
  case TransformKind::Chunk8:
    changes = chunkCollectives(dag, numChunks(kind));
    break;
  case TransformKind::Split:
    changes = splitReduces(dag);
    break;
  }
  if (changes > 0)
    if (Result<void> sound = dag.check(); !sound)
      return fail(ErrorKind::Internal,
                  "transform " + std::string(toString(kind)) +
                      " broke the DAG: " + sound.error().message);
  return changes;
}

Result<uint32_t> applyTransforms(Dag &dag,
                                 std::span<const TransformKind> kinds) {
  uint32_t changes = 0;
  for (TransformKind kind : kinds) {
    MGPU_TRY_ASSIGN(uint32_t more, applyTransform(dag, kind));
    changes += more;
  }
  return changes;
}

} // namespace mgpu::planner
