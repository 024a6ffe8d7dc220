// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/space/TransformSpace.h"

#include "planner/dag/ContentHash.h"
#include "planner/dag/LaunchFacts.h"
#include "planner/schedule/transform/ChunkCounts.h"
#include "support/Number.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::tuner {

using namespace planner;

namespace {

/// Switches before and after the chunks, in the order of allTransforms.
constexpr TransformKind firstSwitches[] = {
    TransformKind::Copies, TransformKind::Scatter, TransformKind::Bucket};
constexpr TransformKind lastSwitch = TransformKind::Split;
constexpr const char *chunksName = "chunks";

std::string groupName(size_t group) {
  return fmt::format("{}.{}", chunksName, group);
}

/// Whether what the text of each kernel relies on, which is emitted once for
/// the launches of the program as it came, holds for those of `changed` too.
bool keepsFacts(const std::vector<LaunchFacts> &before, const Dag &changed) {
  const std::vector<LaunchFacts> after = launchFacts(changed);
  for (size_t k = 0; k < before.size(); ++k)
    if (!after[k].implies(before[k]))
      return false;
  return true;
}

/// Walks the lists, sharing what their fronts have in common.
class Lister {
public:
  explicit Lister(const Dag &dag)
      : mostVectors(std::clamp<size_t>(25'000 / (dag.nodes.size() + 1), 4, 64)),
        facts(launchFacts(dag)) {}

  Result<std::vector<TransformList>> run(const Dag &dag) {
    MGPU_TRY(switches(dag, 0));
    return std::move(lists);
  }

private:
  /// `list` has made `dag` of the program; firstSwitches[k] is decided next.
  Result<void> switches(const Dag &dag, size_t k) {
    if (k == std::size(firstSwitches))
      return chunks(dag);
    MGPU_TRY(switches(dag, k + 1));
    return with(dag, firstSwitches[k],
                [&](const Dag &changed) { return switches(changed, k + 1); });
  }

  Result<void> chunks(const Dag &dag) {
    MGPU_TRY(split(dag));
    MGPU_TRY_ASSIGN(auto vectors, countVectors(dag));
    for (std::vector<uint32_t> &counts : vectors)
      MGPU_TRY(with(dag, Transform(TransformKind::Chunk, std::move(counts)),
                    [&](const Dag &changed) { return split(changed); }));
    return {};
  }

  Result<void> split(const Dag &dag) {
    keep(dag);
    return with(dag, lastSwitch, [&](const Dag &changed) {
      keep(changed);
      return Result<void>();
    });
  }

  /// Goes on with what `transform` makes of `dag`, if that is something else.
  template <typename Next>
  Result<void> with(const Dag &dag, Transform transform, Next next) {
    Dag changed = dag;
    MGPU_TRY_ASSIGN(uint32_t changes, applyTransform(changed, transform));
    if (changes == 0)
      return {};
    list.push_back(std::move(transform));
    MGPU_TRY(next(changed));
    list.pop_back();
    return {};
  }

  void keep(Dag dag) {
    if (!keepsFacts(facts, dag))
      return;
    for (Buffer &buffer : dag.buffers)
      buffer.contents.clear(); // the same in all, and long to hash
    if (seen.insert(contentHash(dag)).second)
      lists.push_back(list);
  }

  /// Numbers of chunks that one group alone can have, 1 among them.
  static Result<std::vector<uint32_t>> choicesOf(const Dag &dag, size_t group,
                                                 size_t numGroups) {
    std::vector<uint32_t> choices;
    for (uint32_t count : chunkChoices) {
      std::vector<uint32_t> counts(numGroups, 1);
      counts[group] = count;
      Dag changed = dag;
      MGPU_TRY_ASSIGN(
          uint32_t changes,
          applyTransform(changed, Transform(TransformKind::Chunk, counts)));
      if (count == 1 || changes > 0)
        choices.push_back(count);
    }
    return choices;
  }

  /// The numbers of chunks of all groups to be tried; not those of which none
  /// is cut.
  Result<std::vector<std::vector<uint32_t>>>
  countVectors(const Dag &dag) const {
    const auto groups = chunkGroups(dag);
    std::vector<std::vector<uint32_t>> vectors;
    if (groups.empty())
      return vectors;
    /// Groups that take the same number, and the numbers.
    struct Wheel {
      std::vector<size_t> groups;
      std::vector<uint32_t> choices;
    };
    std::vector<Wheel> wheels;
    const std::vector<size_t> order = groupsByBytes(dag, groups);
    constexpr size_t numChoices = std::size(chunkChoices);
    size_t product = 1, alone = 0;
    for (; alone < order.size(); ++alone) {
      const bool isLast = alone + 1 == order.size();
      // There must still be room for a wheel of those left.
      if (product * 2 * (isLast ? 1 : numChoices) > mostVectors)
        break;
      MGPU_TRY_ASSIGN(auto choices,
                      choicesOf(dag, order[alone], groups.size()));
      if (product * choices.size() * (isLast ? 1 : numChoices) > mostVectors)
        break;
      product *= choices.size();
      wheels.push_back({{order[alone]}, std::move(choices)});
    }
    if (alone < order.size())
      wheels.push_back({{order.begin() + ptrdiff_t(alone), order.end()},
                        {std::begin(chunkChoices), std::end(chunkChoices)}});
    std::vector<size_t> at(wheels.size(), 0);
    while (true) {
      size_t turned = 0;
      while (turned < at.size() &&
             ++at[turned] == wheels[turned].choices.size())
        at[turned++] = 0;
      if (turned == at.size())
        return vectors;
      std::vector<uint32_t> &counts = vectors.emplace_back(groups.size(), 1);
      for (size_t w = 0; w < wheels.size(); ++w)
        for (size_t group : wheels[w].groups)
          counts[group] = wheels[w].choices[at[w]];
    }
  }

  const size_t mostVectors; ///< of numbers of chunks, after the same switches
  const std::vector<LaunchFacts> facts; ///< of the program as it came
  TransformList list;
  std::vector<TransformList> lists;
  std::set<std::string> seen; ///< programs, by content
};

} // namespace

std::string TransformParameter::name() const {
  return kind == TransformKind::Chunk ? groupName(group)
                                      : std::string(toString(kind));
}

uint32_t valueOf(const TransformList &list,
                 const TransformParameter &parameter) {
  const bool isChunks = parameter.kind == TransformKind::Chunk;
  for (const Transform &transform : list)
    if (transform.kind == parameter.kind)
      return !isChunks ? 1
             : parameter.group < transform.counts.size()
                 ? transform.counts[parameter.group]
                 : 1;
  return isChunks ? 1 : 0;
}

void addPairs(const TransformList &list, db::Pairs &pairs) {
  for (const Transform &transform : list) {
    if (isChunk(transform.kind))
      pairs[chunksName] = std::to_string(numChunks(transform.kind));
    else if (transform.kind != TransformKind::Chunk)
      pairs[std::string(toString(transform.kind))] = "on";
    for (size_t g = 0; g < transform.counts.size(); ++g)
      pairs[groupName(g)] = std::to_string(transform.counts[g]);
  }
}

Result<TransformList> transformsFrom(const db::Pairs &pairs) {
  auto wrong = [](const auto &pair) {
    return fail(ErrorKind::Invalid,
                fmt::format("a stored configuration has {}={}, which is not a "
                            "transform",
                            pair.first, pair.second));
  };
  TransformList list;
  auto addSwitch = [&](TransformKind kind) -> Result<void> {
    auto at = pairs.find(std::string(toString(kind)));
    if (at == pairs.end())
      return {};
    if (at->second != "on")
      return wrong(*at);
    list.emplace_back(kind);
    return {};
  };
  for (TransformKind kind : firstSwitches)
    MGPU_TRY(addSwitch(kind));
  if (auto at = pairs.find(chunksName); at != pairs.end()) {
    auto kind = std::find_if(
        std::begin(chunkTransforms), std::end(chunkTransforms), [&](auto each) {
          return std::to_string(numChunks(each)) == at->second;
        });
    if (kind == std::end(chunkTransforms) || pairs.contains(groupName(0)))
      return wrong(*at);
    list.emplace_back(*kind);
  }
  std::vector<uint32_t> counts;
  for (auto at = pairs.find(groupName(0)); at != pairs.end();
       at = pairs.find(groupName(counts.size()))) {
    auto count = numberFrom<uint32_t>(at->second);
    if (!count || *count < 1 || *count > maxChunks)
      return wrong(*at);
    counts.push_back(*count);
  }
  if (!counts.empty()) {
    if (std::all_of(counts.begin(), counts.end(),
                    [](uint32_t count) { return count == 1; }))
      return wrong(*pairs.find(groupName(0)));
    list.emplace_back(TransformKind::Chunk, std::move(counts));
  }
  MGPU_TRY(addSwitch(lastSwitch));
  return list;
}

std::string toText(const TransformList &list) {
  std::string text;
  for (const Transform &transform : list) {
    db::Pairs pairs;
    addPairs({transform}, pairs);
    for (auto &[name, value] : pairs)
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

Result<std::vector<TransformList>> transformLists(const Dag &dag) {
  uint64_t constants = 0;
  for (const Buffer &buffer : dag.buffers)
    constants += buffer.contents.size();
  if (dag.nodes.size() > mostTransformedNodes ||
      constants > mostTransformedConstants)
    return std::vector<TransformList>{{}};
  return Lister(dag).run(dag);
}

Result<Dag> transformed(const Dag &dag, const TransformList &list) {
  Dag changed = dag;
  for (const Transform &transform : list) {
    MGPU_TRY_ASSIGN(uint32_t changes, applyTransform(changed, transform));
    if (changes == 0)
      return fail(ErrorKind::Invalid,
                  fmt::format("transform {} has nothing to change in this "
                              "program",
                              toString(transform)));
  }
  if (!keepsFacts(launchFacts(dag), changed))
    return fail(ErrorKind::Invalid,
                "the transforms move arguments of kernels to where their texts "
                "for GPUs cannot access them");
  return changed;
}

TransformChoices::TransformChoices(std::vector<TransformList> given) {
  size_t numGroups = 0;
  for (const TransformList &list : given)
    for (const Transform &transform : list)
      numGroups = std::max(numGroups, transform.counts.size());
  std::vector<TransformParameter> all;
  for (TransformKind kind : firstSwitches)
    all.push_back({kind, 0});
  for (uint32_t g = 0; g < numGroups; ++g)
    all.push_back({TransformKind::Chunk, g});
  all.push_back({lastSwitch, 0});
  for (const TransformParameter &parameter : all) {
    std::set<uint32_t> values;
    for (const TransformList &list : given)
      values.insert(valueOf(list, parameter));
    if (values.size() < 2)
      continue;
    Parameter described{parameter.name(), {values.begin(), values.end()}, {}};
    if (parameter.kind != TransformKind::Chunk)
      described.labels = {"off", "on"};
    varied.push_back(parameter);
    descriptions.push_back(std::move(described));
  }
  for (TransformList &list : given) {
    std::vector<double> values;
    for (const TransformParameter &parameter : varied) {
      values.push_back(valueOf(list, parameter));
      beginnings.insert(values);
    }
    lists.emplace(std::move(values), std::move(list));
  }
}

bool TransformChoices::begins(std::span<const double> values) const {
  return beginnings.contains({values.begin(), values.end()});
}

const TransformList *
TransformChoices::find(std::span<const double> values) const {
  auto at = lists.find({values.begin(), values.end()});
  return at == lists.end() ? nullptr : &at->second;
}

std::optional<std::vector<double>>
TransformChoices::valuesOf(const TransformList &list) const {
  std::vector<double> values;
  for (const TransformParameter &parameter : varied)
    values.push_back(valueOf(list, parameter));
  const TransformList *found = find(values);
  return found && *found == list ? std::optional(values) : std::nullopt;
}

} // namespace mgpu::tuner
