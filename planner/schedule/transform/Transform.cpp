// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Transform.h"

#include "planner/schedule/transform/Rewrite.h"
#include "support/Number.h"
#include "support/Spelling.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

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
  case TransformKind::Order:
    return "order";
  case TransformKind::Early:
    return "early";
  case TransformKind::NoFork:
    return "nofork";
  }
  return "unknown";
}

bool SchedulePolicy::*policyFlagOf(TransformKind kind) {
  switch (kind) {
  case TransformKind::Order:
    return &SchedulePolicy::order;
  case TransformKind::Early:
    return &SchedulePolicy::early;
  case TransformKind::NoFork:
    return &SchedulePolicy::join;
  default:
    return nullptr;
  }
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
    auto count = numberFrom<uint32_t>(text.substr(at + 1, end - at - 1));
    if (!count || *count < 1 || *count > maxChunks)
      return std::nullopt;
    transform.counts.push_back(*count);
    at = end;
  }
  if (transform.kind != TransformKind::Chunk || transform.counts.empty())
    return std::nullopt;
  return transform;
}

static std::vector<std::string> transformNames() {
  std::vector<std::string> names = {"auto", "none"};
  for (TransformKind kind : allTransforms)
    names.emplace_back(toString(kind));
  return names;
}

Result<TransformChoice> parseTransforms(const std::string &text) {
  TransformChoice choice;
  bool isBased = false; // on all schedule policies, by "auto" or "none"
  for (size_t at = 0; at <= text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    std::string name = text.substr(at, comma - at);
    bool isFirst = at == 0, isLess = name.starts_with('-');
    at = comma + 1;
    if (isFirst && (isLess || name == "auto"))
      for (TransformKind kind : allTransforms)
        if (!isChunk(kind))
          choice.transforms.emplace_back(kind);
    isBased |= isFirst && (isLess || name == "auto" || name == "none");
    if (isFirst && isBased && !isLess)
      continue;
    std::optional<Transform> transform =
        parseTransform(name.substr(isLess ? 1 : 0));
    if (!transform)
      return fail(
          ErrorKind::Usage,
          fmt::format("--transforms {}: there is no \"{}\"; give auto, "
                      "none or a list of algorithm, copies, scatter, "
                      "bucket, chunk, chunk2, chunk4, chunk8, split, "
                      "order, early, nofork; auto,-NAME is all but one{}",
                      text, name, didYouMean(name, transformNames())));
    if (auto policyFlag = policyFlagOf(transform->kind)) {
      if (!choice.namesPolicy && !isBased)
        choice.schedulePolicy = strictPolicy;
      choice.namesPolicy = true;
      choice.schedulePolicy.*policyFlag = !isLess;
    }
    if (isLess)
      std::erase_if(choice.transforms, [&](const Transform &other) {
        return other.kind == transform->kind;
      });
    else
      choice.transforms.push_back(std::move(*transform));
  }
  return choice;
}

void scaleTime(DagNode &node, double factor) {
  if (node.durationUs)
    *node.durationUs *= factor;
  else
    node.timeFactor *= factor;
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

/// `groups` are chunkGroups(), of a Chunk.
static Transformed change(const Rewriting &rewriting,
                          const Transform &transform,
                          const std::vector<std::vector<NodeId>> &groups) {
  switch (transform.kind) {
  case TransformKind::Algorithm:
  case TransformKind::Order:
  case TransformKind::Early:
  case TransformKind::NoFork:
    return {};
  case TransformKind::Copies:
    return dropCopies(rewriting.dag);
  case TransformKind::Scatter:
    return scatterReduces(rewriting);
  case TransformKind::Bucket:
    return bucketReduces(rewriting);
  case TransformKind::Chunk:
    return chunkCollectives(rewriting, groups, transform.counts);
  case TransformKind::Chunk2:
  case TransformKind::Chunk4:
  case TransformKind::Chunk8:
    return chunkCollectives(rewriting, numChunks(transform.kind));
  case TransformKind::Split:
    return splitReduces(rewriting);
  }
  return {};
}

/// By factor: the nodes it names.
static std::vector<std::set<std::string>>
namesOf(const Dag &dag, std::span<const OpFactor> ops) {
  std::vector<std::set<std::string>> named(ops.size());
  for (size_t k = 0; k < ops.size(); ++k)
    for (const DagNode &node : dag.nodes)
      if (matchesPattern(ops[k].pattern, node.name))
        named[k].insert(node.name);
  return named;
}

/// `named` as namesOf() gave them before the transform. A node that it makes of
/// another has that one's name, a point and more.
static void scaleNew(Dag &dag, std::span<const OpFactor> ops,
                     const std::vector<std::set<std::string>> &named) {
  for (size_t k = 0; k < ops.size(); ++k)
    for (DagNode &node : dag.nodes) {
      if (!matchesPattern(ops[k].pattern, node.name))
        continue;
      bool isOld = named[k].count(node.name) > 0;
      for (size_t dot = node.name.find('.'); dot != std::string::npos && !isOld;
           dot = node.name.find('.', dot + 1))
        isOld = named[k].count(node.name.substr(0, dot)) > 0;
      if (!isOld)
        scaleTime(node, ops[k].factor);
    }
}

Result<Transformed> transformed(const Dag &dag, const Transform &transform,
                                const TransformContext &context) {
  std::vector<std::vector<NodeId>> groups;
  if (transform.kind == TransformKind::Chunk) {
    if (transform.counts.empty())
      return Transformed();
    groups = chunkGroups(dag);
    if (groups.size() != transform.counts.size())
      return fail(ErrorKind::Invalid,
                  fmt::format("transform {} is of a program with {} groups of "
                              "collectives to cut; this one has {}",
                              toString(transform), transform.counts.size(),
                              groups.size()));
  }
  SkippedCandidates left;
  Transformed made = change({dag, context.prices, left}, transform, groups);
  if (context.left)
    *context.left = left.lines();
  if (made.changes == 0)
    return Transformed();
  scaleNew(*made.dag, context.ops, namesOf(dag, context.ops));
  if (Result<void> sound = made.dag->check(); !sound)
    return fail(ErrorKind::Internal,
                "transform " + toString(transform) +
                    " broke the DAG: " + sound.error().message);
  return made;
}

Result<uint32_t> applyTransform(Dag &dag, const Transform &transform,
                                const TransformContext &context) {
  MGPU_TRY_ASSIGN(Transformed made, transformed(dag, transform, context));
  if (made.dag)
    dag = std::move(*made.dag);
  return made.changes;
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
