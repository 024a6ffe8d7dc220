// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/session/TransformSpace.h"

#include "tuner/session/Keys.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

namespace mgpu::tuner {

using namespace planner;

namespace {

/// The place of chunks among the parameters, which are in the order of
/// allTransforms.
constexpr size_t chunksAt = 3;
constexpr std::array<const char *, numTransformParameters> names = {
    "copies", "scatter", "bucket", "chunks", "split"};

uint32_t offValue(size_t parameter) { return parameter == chunksAt ? 1 : 0; }

size_t parameterOf(TransformKind kind) {
  if (isChunk(kind))
    return chunksAt;
  return size_t(std::find(names.begin(), names.end(), toString(kind)) -
                names.begin());
}

uint32_t valueOf(TransformKind kind) {
  return isChunk(kind) ? numChunks(kind) : 1;
}

std::string textOf(size_t parameter, uint32_t value) {
  if (parameter == chunksAt)
    return std::to_string(value);
  return value ? "on" : "off";
}

/// Walks the lists, sharing what their fronts have in common.
class Lister {
public:
  Result<std::vector<TransformList>> run(const Dag &dag) {
    MGPU_TRY(extend(dag, 0));
    return std::move(lists);
  }

private:
  /// `list` has made `dag` of the program; `parameter` is decided next.
  Result<void> extend(Dag dag, size_t parameter) {
    if (parameter == numTransformParameters) {
      for (Buffer &buffer : dag.buffers)
        buffer.contents.clear(); // the same in all, and long to hash
      if (seen.insert(contentHash(dag)).second)
        lists.push_back(list);
      return {};
    }
    MGPU_TRY(extend(dag, parameter + 1));
    for (TransformKind kind : allTransforms) {
      if (parameterOf(kind) != parameter)
        continue;
      Dag changed = dag;
      MGPU_TRY_ASSIGN(uint32_t changes, applyTransform(changed, kind));
      if (changes == 0)
        continue;
      list.push_back(kind);
      MGPU_TRY(extend(std::move(changed), parameter + 1));
      list.pop_back();
    }
    return {};
  }

  TransformList list;
  std::vector<TransformList> lists;
  std::set<std::string> seen; ///< programs, by content
};

} // namespace

uint32_t valueOf(const TransformList &list, size_t parameter) {
  for (TransformKind kind : list)
    if (parameterOf(kind) == parameter)
      return valueOf(kind);
  return offValue(parameter);
}

void addPairs(const TransformList &list, db::Pairs &pairs) {
  for (TransformKind kind : list)
    pairs[names[parameterOf(kind)]] = textOf(parameterOf(kind), valueOf(kind));
}

Result<TransformList> transformsFrom(const db::Pairs &pairs) {
  TransformList list;
  for (size_t p = 0; p < numTransformParameters; ++p) {
    auto at = pairs.find(names[p]);
    if (at == pairs.end())
      continue;
    auto kind = std::find_if(std::begin(allTransforms), std::end(allTransforms),
                             [&](auto each) {
                               return parameterOf(each) == p &&
                                      textOf(p, valueOf(each)) == at->second;
                             });
    if (kind == std::end(allTransforms))
      return fail(ErrorKind::Invalid,
                  fmt::format("a stored configuration has {}={}, which is no "
                              "transform",
                              names[p], at->second));
    list.push_back(*kind);
  }
  return list;
}

std::string toText(const TransformList &list) {
  std::string text;
  for (TransformKind kind : list)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ",
                        names[parameterOf(kind)],
                        textOf(parameterOf(kind), valueOf(kind)));
  return text;
}

Result<std::vector<TransformList>> transformLists(const Dag &dag) {
  uint64_t constants = 0;
  for (const Buffer &buffer : dag.buffers)
    constants += buffer.contents.size();
  if (dag.nodes.size() > mostTransformedNodes ||
      constants > mostTransformedConstants)
    return std::vector<TransformList>{{}};
  return Lister().run(dag);
}

Result<Dag> transformed(const Dag &dag, const TransformList &list) {
  Dag changed = dag;
  for (TransformKind kind : list) {
    MGPU_TRY_ASSIGN(uint32_t changes, applyTransform(changed, kind));
    if (changes == 0)
      return fail(ErrorKind::Invalid,
                  fmt::format("transform {} has nothing to change in this "
                              "program",
                              toString(kind)));
  }
  return changed;
}

TransformChoices TransformChoices::of(std::vector<TransformList> lists) {
  TransformChoices choices;
  for (size_t p = 0; p < numTransformParameters; ++p) {
    std::set<uint32_t> values;
    for (const TransformList &list : lists)
      values.insert(valueOf(list, p));
    if (values.size() < 2)
      continue;
    Parameter parameter{names[p], {}, {}};
    for (uint32_t value : values) {
      parameter.values.push_back(value);
      if (p != chunksAt)
        parameter.labels.push_back(textOf(p, value));
    }
    choices.parameters.push_back(p);
    choices.described.push_back(std::move(parameter));
  }
  choices.lists = std::move(lists);
  return choices;
}

const TransformList *
TransformChoices::find(std::span<const double> values) const {
  auto at =
      std::find_if(lists.begin(), lists.end(), [&](const TransformList &list) {
        for (size_t k = 0; k < parameters.size(); ++k)
          if (double(valueOf(list, parameters[k])) != values[k])
            return false;
        return true;
      });
  return at == lists.end() ? nullptr : &*at;
}

} // namespace mgpu::tuner
