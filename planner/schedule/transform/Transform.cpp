// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Transform.h"

#include "planner/schedule/transform/FileRewrite.h"
#include "planner/schedule/transform/Rewrite.h"

#include <algorithm>
#include <charconv>
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
  case TransformKind::Chunk:
    return "chunk";
  case TransformKind::Split:
    return "split";
  }
  return "unknown";
}

std::string toString(const Transform &transform) {
  std::string text(toString(transform.kind));
  for (size_t g = 0; g < transform.counts.size(); ++g)
    text += fmt::format("{}{}", g == 0 ? ":" : "/", transform.counts[g]);
  return text;
}

std::optional<Transform> parseTransform(std::string_view text) {
  std::string_view name = text.substr(0, text.find(':'));
  auto kind =
      std::find_if(std::begin(allTransforms), std::end(allTransforms),
                   [&](TransformKind each) { return toString(each) == name; });
  if (kind == std::end(allTransforms))
    return std::nullopt;
  Transform transform(*kind);
  if (name == text)
    return transform;
  for (size_t at = name.size(); at < text.size();) {
    size_t end = std::min(text.find('/', at + 1), text.size());
    std::string_view word = text.substr(at + 1, end - at - 1);
    uint32_t count = 0;
    auto [stop, error] =
        std::from_chars(word.data(), word.data() + word.size(), count);
    if (error != std::errc() || stop != word.data() + word.size() ||
        count < 1 || count > maxChunks)
      return std::nullopt;
    transform.counts.push_back(count);
    at = end;
  }
  if (transform.kind != TransformKind::Chunk || transform.counts.empty())
    return std::nullopt;
  return transform;
}

Result<std::vector<Transform>> parseTransforms(const std::string &text) {
  std::vector<Transform> transforms;
  if (text == "none")
    return transforms;
  if (text == "auto") {
    for (TransformKind kind : allTransforms)
      if (!isChunk(kind))
        transforms.emplace_back(kind);
    return transforms;
  }
  for (size_t at = 0; at <= text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    std::string name = text.substr(at, comma - at);
    at = comma + 1;
    std::optional<Transform> transform = parseTransform(name);
    if (!transform)
      return fail(ErrorKind::Usage,
                  fmt::format("--transforms {}: there is no \"{}\"; give auto, "
                              "none or a list of algorithm, copies, scatter, "
                              "bucket, chunk, chunk2, chunk4, chunk8, split",
                              text, name));
    transforms.push_back(std::move(*transform));
  }
  return transforms;
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

/// Of a DAG some of whose nodes are known only by their cost.
static Result<uint32_t> transformFile(Dag &dag, const Transform &transform,
                                      const TransformContext &context) {
  Leavings left;
  Result<uint32_t> changes = 0;
  switch (transform.kind) {
  case TransformKind::Chunk:
    changes = chunkFileReduces(dag, transform.counts, context, left);
    break;
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
  case TransformKind::Chunk4:
  case TransformKind::Chunk8:
    changes = chunkFileReduces(dag, numChunks(transform.kind), context, left);
    break;
  case TransformKind::Split:
    changes = splitFileReduces(dag, context, left);
    break;
  }
  if (context.left)
    *context.left = left.lines();
  return changes;
}

static uint32_t transformProgram(Dag &dag, const Transform &transform) {
  uint32_t changes = 0;
  switch (transform.kind) {
  case TransformKind::Chunk:
    changes = chunkCollectives(dag, transform.counts);
    break;
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
  case TransformKind::Chunk4:
  case TransformKind::Chunk8:
    changes = chunkCollectives(dag, numChunks(transform.kind));
    break;
  case TransformKind::Split:
    changes = splitReduces(dag);
    break;
  }
  return changes;
}

static bool isProgram(const Dag &dag) {
  return std::none_of(dag.nodes.begin(), dag.nodes.end(),
                      [](const DagNode &node) {
                        return std::holds_alternative<OpaqueCall>(node.work);
                      });
}

std::vector<std::vector<NodeId>> chunkGroups(const Dag &dag) {
  return isProgram(dag) ? programChunkGroups(dag) : fileChunkGroups(dag);
}

Result<uint32_t> applyTransform(Dag &dag, const Transform &transform,
                                const TransformContext &context) {
  if (transform.kind == TransformKind::Chunk) {
    if (transform.counts.empty())
      return 0;
    if (size_t groups = chunkGroups(dag).size();
        groups != transform.counts.size())
      return fail(ErrorKind::Invalid,
                  fmt::format("transform {} is of a program with {} groups of "
                              "collectives to cut; this one has {}",
                              toString(transform), transform.counts.size(),
                              groups));
  }
  uint32_t changes = 0;
  if (isProgram(dag)) {
    changes = transformProgram(dag, transform);
  } else {
    MGPU_TRY_ASSIGN(changes, transformFile(dag, transform, context));
  }
  if (changes > 0)
    if (Result<void> sound = dag.check(); !sound)
      return fail(ErrorKind::Internal,
                  "transform " + toString(transform) +
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
