// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Transform.h"

#include "planner/schedule/transform/FileRewrite.h"
#include "planner/schedule/transform/Rewrite.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

std::string_view toString(TransformKind kind) {
  switch (kind) {
  case TransformKind::Algorithm:
    return "algorithm";
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

Result<std::vector<TransformKind>> parseTransforms(const std::string &text) {
  if (text == "none")
    return std::vector<TransformKind>();
  if (text == "auto")
    return std::vector(std::begin(allTransforms), std::end(allTransforms));
  std::vector<TransformKind> kinds;
  for (size_t at = 0; at <= text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    std::string name = text.substr(at, comma - at);
    at = comma + 1;
    if (name == "chunk") {
      kinds.insert(kinds.end(), std::begin(chunkTransforms),
                   std::end(chunkTransforms));
      continue;
    }
    std::optional<TransformKind> kind = parseTransform(name);
    if (!kind)
      return fail(ErrorKind::Usage,
                  fmt::format("--transforms {}: there is no \"{}\"; give auto, "
                              "none or a list of algorithm, copies, scatter, "
                              "bucket, chunk, chunk2, chunk4, chunk8, split",
                              text, name));
    kinds.push_back(*kind);
  }
  return kinds;
}

bool isChunk(TransformKind kind) {
  return std::find(std::begin(chunkTransforms), std::end(chunkTransforms),
                   kind) != std::end(chunkTransforms);
}

/// Of a DAG some of whose nodes are known only by their cost.
static Result<uint32_t> transformFile(Dag &dag, TransformKind kind,
                                      const TransformContext &context) {
  Leavings left;
  Result<uint32_t> changes = 0;
  switch (kind) {
  case TransformKind::Algorithm:
  case TransformKind::Copies:
    break;
  case TransformKind::Scatter:
    changes = scatterFileReduces(dag, context, left);
    break;
  case TransformKind::Bucket:
    changes = bucketFileReduces(dag, context, left);
    break;
  case TransformKind::Chunk2:
    changes = chunkFileReduces(dag, 2, context, left);
    break;
  case TransformKind::Chunk4:
    changes = chunkFileReduces(dag, 4, context, left);
    break;
  case TransformKind::Chunk8:
    changes = chunkFileReduces(dag, 8, context, left);
    break;
  case TransformKind::Split:
    changes = splitFileReduces(dag, context, left);
    break;
  }
  if (context.left)
    *context.left = left.lines();
  return changes;
}

static Result<uint32_t> transformProgram(Dag &dag, TransformKind kind) {
  uint32_t changes = 0;
  switch (kind) {
  case TransformKind::Algorithm:
    break;
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
    changes = chunkCollectives(dag, 2);
    break;
  case TransformKind::Chunk4:
    changes = chunkCollectives(dag, 4);
    break;
  case TransformKind::Chunk8:
    changes = chunkCollectives(dag, 8);
    break;
  case TransformKind::Split:
    changes = splitReduces(dag);
    break;
  }
  return changes;
}

Result<uint32_t> applyTransform(Dag &dag, TransformKind kind,
                                const TransformContext &context) {
  bool isKnown =
      std::none_of(dag.nodes.begin(), dag.nodes.end(), [](const DagNode &node) {
        return std::holds_alternative<OpaqueCall>(node.work);
      });
  MGPU_TRY_ASSIGN(uint32_t changes, isKnown
                                        ? transformProgram(dag, kind)
                                        : transformFile(dag, kind, context));
  if (changes > 0)
    if (Result<void> sound = dag.check(); !sound)
      return fail(ErrorKind::Internal,
                  "transform " + std::string(toString(kind)) +
                      " broke the DAG: " + sound.error().message);
  return changes;
}

Result<uint32_t> applyTransforms(Dag &dag, std::span<const TransformKind> kinds,
                                 const TransformContext &context) {
  uint32_t changes = 0;
  for (TransformKind kind : kinds) {
    MGPU_TRY_ASSIGN(uint32_t more, applyTransform(dag, kind, context));
    changes += more;
  }
  return changes;
}

} // namespace mgpu::planner
