// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/bound/StreamHeads.h"

#include <algorithm>
#include <optional>

namespace mgpu::planner {

namespace {

/// Rows of bits: the ancestors of each node, of which those of a node go once
/// all its successors have theirs.
class AncestorBits {
public:
  AncestorBits(const Problem &problem, Direction direction)
      : problem(problem), direction(direction), rows(problem.size()),
        open(problem.size()) {
    for (uint32_t i = 0; i < problem.size(); ++i)
      open[i] = problem.needs(i, opposite(direction)).size();
  }

  const std::vector<uint64_t> &collect(uint32_t node) {
    std::vector<uint64_t> &row = rows[node];
    row = takeRow();
    for (uint32_t other : problem.needs(node, direction)) {
      std::vector<uint64_t> &theirs = rows[other];
      for (size_t word = 0; word < row.size(); ++word)
        row[word] |= theirs[word];
      row[other / 64] |= uint64_t(1) << (other % 64);
      if (--open[other] == 0)
        unused.push_back(std::move(theirs));
    }
    return row;
  }

private:
  std::vector<uint64_t> takeRow() {
    std::vector<uint64_t> row;
    if (!unused.empty()) {
      row = std::move(unused.back());
      unused.pop_back();
    }
    row.assign((problem.size() + 63) / 64, 0);
    return row;
  }

  const Problem &problem;
  const Direction direction;
  std::vector<std::vector<uint64_t>> rows, unused;
  std::vector<size_t> open; ///< successors without a row
};

/// The nodes that are done on one resource, by rising head.
struct Done {
  struct Entry {
    double head, work;
    uint32_t node;
  };
  std::vector<Entry> entries;
  double total = 0; ///< the sum of their work

  void insert(const Entry &entry) {
    auto at = std::upper_bound(
        entries.begin(), entries.end(), entry,
        [](const Entry &a, const Entry &b) { return a.head < b.head; });
    entries.insert(at, entry);
    total += entry.work;
  }

  /// Raises `claim` by what `ancestors` have to do here.
  void raise(Claim &claim, uint32_t resource,
             const std::vector<uint64_t> &ancestors) const {
    double sum = 0, rest = total;
    for (size_t k = entries.size(); k-- > 0;) {
      const Entry &entry = entries[k];
      // Not even all that is left would give more.
      if (entry.head + sum + rest <= claim.us)
        return;
      rest -= entry.work;
      if (!(ancestors[entry.node / 64] >> (entry.node % 64) & 1))
        continue;
      sum += entry.work;
      if (entry.head + sum > claim.us) {
        claim.us = entry.head + sum;
        claim.reason = WorkReason{resource, entry.head};
      }
    }
  }
};

} // namespace

std::vector<Claim> streamHeads(const Problem &problem, Direction direction,
                               uint32_t mostNodes) {
  const uint32_t nodes = problem.size();
  const bool hasSets = nodes <= mostNodes;
  std::vector<Claim> claims(nodes);
  std::optional<AncestorBits> ancestors;
  if (hasSets)
    ancestors.emplace(problem, direction);
  std::vector<Done> done(problem.numResources());
  for (uint32_t k = 0; k < nodes; ++k) {
    const uint32_t node = problem.nodeAt(k, direction);
    Claim &claim = claims[node];
    for (uint32_t other : problem.needs(node, direction))
      if (double us = claims[other].us + problem.durations[other];
          us > claim.us)
        claim = {us, PathReason{other}};
    if (!ancestors)
      continue;
    const std::vector<uint64_t> &row = ancestors->collect(node);
    for (uint32_t r = 0; r < done.size(); ++r)
      done[r].raise(claim, r, row);
    for (const ResourceUse &use : problem.uses[node])
      done[use.resource].insert({claim.us, problem.work(node, use), node});
  }
  return claims;
}

} // namespace mgpu::planner
