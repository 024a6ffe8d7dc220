// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/certificate/CheckSearch.h"

#include <algorithm>
#include <bitset>
#include <fmt/format.h>
#include <numeric>
#include <optional>

namespace mgpu::planner {

namespace {

using NodeSet = std::bitset<maxSearchedNodes>;

/// Who precedes and follows whom, transitively closed.
struct Decided {
  std::vector<NodeSet> before, after;

  bool isOrdered(uint32_t a, uint32_t b) const {
    return before[a][b] || before[b][a];
  }
  void add(uint32_t from, uint32_t to) {
    const NodeSet earlier = NodeSet(before[from]).set(from),
                  later = NodeSet(after[to]).set(to);
    for (uint32_t i = 0; i < before.size(); ++i) {
      if (later[i])
        before[i] |= earlier;
      if (earlier[i])
        after[i] |= later;
    }
  }
};

class SearchCheck {
public:
  SearchCheck(const Problem &problem, double boundUs)
      : problem(problem), limit(boundUs * (1 - 2e-9)), heads(problem.size()),
        tails(problem.size()), users(problem.numResources()) {
    for (uint32_t i = 0; i < problem.size(); ++i)
      if (problem.durations[i] > 0)
        for (const ResourceUse &use : problem.uses[i])
          users[use.resource].push_back(i);
  }

  Result<void> run(const SearchArgument &search) {
    // The cases that are left to be shown to have no schedule; nothing where a
    // decision contradicts those before it.
    std::vector<std::optional<Decided>> open{root()};
    for (const Branch &branch : search.branches) {
      if (open.empty())
        return bad("goes on behind its last leaf");
      std::optional<Decided> state = std::move(open.back());
      open.pop_back();
      if (branch.first == branch.second) {
        if (state && !isRefuted(*state))
          return bad("has a leaf that a schedule may reach");
        continue;
      }
      if (!meet(branch.first, branch.second))
        return bad(fmt::format("decides between nodes {} and {}, which may run "
                               "side by side",
                               branch.first, branch.second));
      open.push_back(decided(state, branch.second, branch.first));
      open.push_back(decided(state, branch.first, branch.second));
    }
    if (!open.empty())
      return bad("ends before its last leaf");
    return {};
  }

private:
  static tl::unexpected<Error> bad(const std::string &what) {
    return fail(ErrorKind::Invalid, "certificate: its search " + what);
  }

  Decided root() const {
    Decided state{std::vector<NodeSet>(problem.size()),
                  std::vector<NodeSet>(problem.size())};
    for (uint32_t i = 0; i < problem.size(); ++i)
      for (uint32_t before : problem.before[i])
        state.add(before, i);
    // Nodes that nothing tells apart may go in the order of their numbers.
    for (uint32_t a = 0; a < problem.size(); ++a)
      for (uint32_t b = a + 1; b < problem.size(); ++b)
        if (areAlike(a, b) && !state.isOrdered(a, b))
          state.add(a, b);
    return state;
  }
  bool areAlike(uint32_t a, uint32_t b) const {
    auto same = [](auto x, auto y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end());
    };
    return meet(a, b) && problem.durations[a] == problem.durations[b] &&
           std::equal(problem.uses[a].begin(), problem.uses[a].end(),
                      problem.uses[b].begin(), problem.uses[b].end(),
                      [](const ResourceUse &x, const ResourceUse &y) {
                        return x.resource == y.resource && x.share == y.share;
                      }) &&
           same(problem.before[a], problem.before[b]) &&
           same(problem.after[a], problem.after[b]);
  }
  /// Whether two nodes take time of one unit stream.
  bool meet(uint32_t a, uint32_t b) const {
    if (std::max(a, b) >= problem.size() || problem.durations[a] <= 0 ||
        problem.durations[b] <= 0)
      return false;
    for (const ResourceUse &x : problem.uses[a])
      for (const ResourceUse &y : problem.uses[b])
        if (x.resource == y.resource && problem.isUnit[x.resource])
          return true;
    return false;
  }
  static std::optional<Decided> decided(const std::optional<Decided> &state,
                                        uint32_t from, uint32_t to) {
    if (!state || state->before[from][to])
      return std::nullopt;
    std::optional<Decided> next = state;
    if (!next->before[to][from])
      next->add(from, to);
    return next;
  }

  /// The least time before each node, of the sets that must precede it:
  /// backward, with `sets` those that must follow, the time after it.
  void measure(const std::vector<NodeSet> &sets, std::vector<double> &claims) {
    std::vector<uint32_t> order(problem.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(sets[a].count(), a) < std::pair(sets[b].count(), b);
    });
    for (uint32_t node : order) {
      double us = 0;
      for (uint32_t i = 0; i < problem.size(); ++i)
        if (sets[node][i])
          us = std::max(us, claims[i] + problem.durations[i]);
      for (uint32_t r = 0; r < users.size(); ++r) {
        if (!problem.isUnit[r])
          continue;
        std::vector<uint32_t> mine;
        for (uint32_t i : users[r])
          if (sets[node][i])
            mine.push_back(i);
        us = std::max(us, latest(mine, claims));
      }
      claims[node] = us;
    }
  }
  /// The end of the last of some nodes of one stream, none of which starts
  /// before its claim.
  double latest(std::vector<uint32_t> &nodes,
                const std::vector<double> &claims) const {
    std::sort(nodes.begin(), nodes.end(),
              [&](uint32_t a, uint32_t b) { return claims[a] > claims[b]; });
    double sum = 0, us = 0;
    for (uint32_t i : nodes) {
      sum += problem.durations[i];
      us = std::max(us, claims[i] + sum);
    }
    return us;
  }

  /// Whether some nodes of one stream start so late, take so long and are
  /// followed by so much that the limit is met.
  bool hasLongSet(uint32_t resource) const {
    std::vector<uint32_t> nodes = users[resource];
    std::sort(nodes.begin(), nodes.end(),
              [&](uint32_t a, uint32_t b) { return heads[a] > heads[b]; });
    for (uint32_t last : nodes) {
      double sum = 0;
      for (uint32_t i : nodes)
        if (tails[i] >= tails[last]) {
          sum += problem.durations[i];
          if (heads[i] + sum + tails[last] >= limit)
            return true;
        }
    }
    return false;
  }

  /// Whether no schedule within the limit keeps what is decided.
  bool isRefuted(Decided &state) {
    for (bool hasChanged = true; hasChanged;) {
      hasChanged = false;
      measure(state.before, heads);
      measure(state.after, tails);
      for (uint32_t i = 0; i < problem.size(); ++i)
        if (heads[i] + problem.durations[i] + tails[i] >= limit)
          return true;
      for (uint32_t r = 0; r < users.size(); ++r)
        if (problem.isUnit[r]) {
          if (hasLongSet(r))
            return true;
          for (uint32_t a : users[r])
            for (uint32_t b : users[r]) {
              if (a >= b || state.isOrdered(a, b))
                continue;
              const double both = problem.durations[a] + problem.durations[b];
              const bool canLead = heads[a] + both + tails[b] < limit,
                         canFollow = heads[b] + both + tails[a] < limit;
              if (!canLead && !canFollow)
                return true;
              if (canLead && canFollow)
                continue;
              state.add(canLead ? a : b, canLead ? b : a);
              hasChanged = true;
            }
        }
    }
    return false;
  }

  const Problem &problem;
  const double limit;
  std::vector<double> heads, tails;
  std::vector<std::vector<uint32_t>> users; ///< by resource: who takes time
};

} // namespace

Result<void> checkSearch(const SearchArgument &search, double boundUs,
                         const Problem &problem) {
  if (problem.size() > maxSearchedNodes)
    return fail(ErrorKind::Invalid,
                fmt::format("certificate: a search is of {} nodes at most",
                            maxSearchedNodes));
  return SearchCheck(problem, boundUs).run(search);
}

} // namespace mgpu::planner
