// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/certificate/Certificate.h"

#include <algorithm>
#include <bitset>
#include <cmath>
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

/// Whether a tree of branches shows that no schedule of the problem ends before
/// `boundUs`, but for two parts in 10^9: every leaf has none, once what its
/// decisions force is drawn. A contradiction at a leaf rests on heads, tails
/// and the sets of a stream, as those of makespanBound() do.
static Result<void> checkSearch(const SearchArgument &search, double boundUs,
                                const Problem &problem) {
  if (problem.size() > maxSearchedNodes)
    return fail(ErrorKind::Invalid,
                fmt::format("certificate: a search is of {} nodes at most",
                            maxSearchedNodes));
  return SearchCheck(problem, boundUs).run(search);
}

namespace {

class MemoryCheck {
public:
  MemoryCheck(const MemoryArgument &argument, const Certificate &certificate,
              const Problem &problem)
      : argument(argument), claims(certificate), problem(problem),
        longest(problem.size(), -1) {}

  Result<double> run() {
    if (argument.device >= problem.devices.size())
      return bad("is of a device that there is not");
    const ProblemDevice &device = problem.devices[argument.device];
    if (device.memoryBytes == UINT64_MAX ||
        device.memoryBytes <= device.residentBytes)
      return bad("is of a device whose memory has no limit, or no room");
    room = device.memoryBytes - device.residentBytes;
    if (argument.small > room / 2)
      return bad("takes more than half the memory as small");
    double sum = 0;
    bool isEmpty = true;
    for (uint32_t b = 0; b < problem.buffers.size(); ++b)
      if (problem.buffers[b].device == argument.device && counted(b) > 0 &&
          isInSet(b)) {
        sum += timeOf(b) * (double(counted(b)) / double(room));
        isEmpty = false;
      }
    return isEmpty ? 0 : argument.head + sum + argument.tail;
  }

private:
  static tl::unexpected<Error> bad(const char *what) {
    return fail(ErrorKind::Invalid,
                fmt::format("certificate: its memory argument {}", what));
  }

  /// Bytes of a buffer, as the argument counts them.
  uint64_t counted(uint32_t b) const {
    const uint64_t bytes = problem.buffers[b].bytes;
    return bytes < argument.small          ? 0
           : bytes > room - argument.small ? room
                                           : bytes;
  }

  bool isInSet(uint32_t b) const {
    if (problem.buffers[b].isKept && argument.tail > 0)
      return false; // nothing follows it
    for (uint32_t user : problem.users[b])
      if (claims.heads[user].us < argument.head ||
          claims.tails[user].us < argument.tail)
        return false;
    return true;
  }

  /// How long a buffer is live at the least.
  double timeOf(uint32_t b) {
    double time = 0;
    for (uint32_t user : problem.users[b])
      time = std::max(
          time, problem.durations[user] +
                    (problem.buffers[b].isKept ? claims.tails[user].us : 0));
    if (problem.size() > mostWaysNodes ||
        problem.buffers[b].bytes < room / mostWaysShare)
      return time;
    // The longest way from the first user's start to each node's end.
    const uint32_t first = problem.users[b].front(),
                   last = problem.users[b].back();
    longest[first] = problem.durations[first];
    for (uint32_t node = first + 1; node <= last; ++node) {
      double before = -1;
      for (uint32_t other : problem.before[node])
        if (other >= first)
          before = std::max(before, longest[other]);
      longest[node] = before < 0 ? -1 : before + problem.durations[node];
    }
    for (uint32_t user : problem.users[b])
      time = std::max(time, longest[user]);
    return time;
  }

  const MemoryArgument &argument;
  const Certificate &claims;
  const Problem &problem;
  uint64_t room = 0;           ///< beside the resident bytes
  std::vector<double> longest; ///< by node; below 0: no way leads there
};

} // namespace

/// The makespan that an argument about memory proves, by the heads and tails of
/// its certificate.
static Result<double> provenByMemory(const MemoryArgument &argument,
                                     const Certificate &certificate,
                                     const Problem &problem) {
  return MemoryCheck(argument, certificate, problem).run();
}

/// Whether a claim is at most what was proven, but for rounding.
static bool isWithin(double claimed, double proven) {
  return std::isfinite(claimed) &&
         claimed <= proven + 1e-10 * std::max(1.0, proven);
}

namespace {

/// The heads of a certificate, or its tails: "before" a node then is what comes
/// after it in the problem.
class ClaimCheck {
public:
  ClaimCheck(const Problem &problem, bool ofHeads,
             const std::vector<Claim> &claims)
      : problem(problem), ofHeads(ofHeads), claims(claims),
        ancestors(problem.size()), open(problem.size()) {}

  Result<void> run() {
    const uint32_t nodes = problem.size();
    for (uint32_t i = 0; i < nodes; ++i)
      open[i] = (ofHeads ? problem.after : problem.before)[i].size();
    // Paths alone need no ancestors.
    const bool needsAncestors =
        std::any_of(claims.begin(), claims.end(), [](const Claim &claim) {
          return std::holds_alternative<WorkReason>(claim.reason);
        });
    if (needsAncestors) {
      std::vector<Rows<User>::Entry> entries;
      for (uint32_t i = 0; i < nodes; ++i)
        for (const ResourceUse &use : problem.uses[i])
          entries.push_back({use.resource, {i, use.share}});
      users = Rows<User>(problem.numResources(), entries);
    }
    for (uint32_t k = 0; k < nodes; ++k) {
      const uint32_t node = ofHeads ? k : nodes - 1 - k;
      if (needsAncestors)
        collectAncestors(node);
      MGPU_TRY_ASSIGN(const double proven, provenBy(node));
      if (!isWithin(claims[node].us, proven))
        return bad(node, fmt::format("is {} us, its reason gives {} us",
                                     claims[node].us, proven));
      if (open[node] == 0)
        release(node);
    }
    return {};
  }

private:
  std::span<const uint32_t> near(uint32_t node) const {
    return ofHeads ? problem.before[node] : problem.after[node];
  }
  tl::unexpected<Error> bad(uint32_t node, const std::string &what) const {
    return fail(ErrorKind::Invalid,
                fmt::format("certificate: the {} of node {} {}",
                            ofHeads ? "head" : "tail", node, what));
  }

  void collectAncestors(uint32_t node) {
    std::vector<uint64_t> &row = ancestors[node];
    if (near(node).empty())
      return;
    if (!unused.empty()) {
      row = std::move(unused.back());
      unused.pop_back();
    }
    row.assign((problem.size() + 63) / 64, 0);
    for (uint32_t other : near(node)) {
      const std::vector<uint64_t> &theirs = ancestors[other];
      for (size_t word = 0; word < theirs.size(); ++word)
        row[word] |= theirs[word];
      row[other / 64] |= uint64_t(1) << (other % 64);
      if (--open[other] == 0)
        release(other);
    }
  }

  void release(uint32_t node) {
    if (!ancestors[node].empty())
      unused.push_back(std::exchange(ancestors[node], {}));
  }

  Result<double> provenBy(uint32_t node) const {
    const Reason &reason = claims[node].reason;
    if (auto *path = std::get_if<PathReason>(&reason)) {
      std::span<const uint32_t> others = near(node);
      if (std::find(others.begin(), others.end(), path->node) == others.end())
        return bad(node, fmt::format("names node {}, which has no edge with it",
                                     path->node));
      return claims[path->node].us + problem.durations[path->node];
    }
    auto *work = std::get_if<WorkReason>(&reason);
    if (!work)
      return 0;
    if (!std::isfinite(work->from))
      return bad(node, "counts from a time that is not a number");
    // Summed apart: beside a late start, brief nodes would be lost.
    double sum = 0;
    bool isEmpty = true;
    if (work->resource >= problem.numResources())
      return bad(node, "is of a resource that there is not");
    if (ancestors[node].empty())
      return 0;
    for (const auto &[i, share] : users[work->resource])
      if ((ancestors[node][i / 64] >> (i % 64) & 1) &&
          claims[i].us >= work->from) {
        sum += problem.durations[i] * share;
        isEmpty = false;
      }
    return isEmpty ? 0 : work->from + sum; // an empty set starts nowhere
  }

  const Problem &problem;
  const bool ofHeads;
  const std::vector<Claim> &claims;
  struct User {
    uint32_t node;
    double share;
  };
  Rows<User> users; ///< by resource
  /// Bits, of open nodes that have any; and those of others, to be used again.
  std::vector<std::vector<uint64_t>> ancestors, unused;
  std::vector<size_t> open; ///< neighbours whose ancestors are not collected
};

} // namespace

static Result<double> provenBy(const Certificate &certificate,
                               const Problem &problem) {
  if (auto *node = std::get_if<NodeArgument>(&certificate.argument)) {
    if (node->node >= problem.size())
      return fail(ErrorKind::Invalid,
                  fmt::format("certificate: there is no node {}", node->node));
    return certificate.heads[node->node].us + problem.durations[node->node] +
           certificate.tails[node->node].us;
  }
  if (auto *memory = std::get_if<MemoryArgument>(&certificate.argument))
    return provenByMemory(*memory, certificate, problem);
  const auto &set = std::get<SetArgument>(certificate.argument);
  double sum = 0;
  bool isEmpty = true;
  for (uint32_t i = 0; i < problem.size(); ++i)
    if (certificate.heads[i].us >= set.head &&
        certificate.tails[i].us >= set.tail)
      for (const ResourceUse &use : problem.uses[i])
        if (use.resource == set.resource) {
          sum += problem.durations[i] * use.share;
          isEmpty = false;
        }
  return isEmpty ? 0 : set.head + sum + set.tail;
}

Result<void> check(const Certificate &certificate, const Problem &problem) {
  if (certificate.heads.size() != problem.size() ||
      certificate.tails.size() != problem.size())
    return fail(ErrorKind::Invalid,
                fmt::format("certificate: it is of {} nodes, the problem has "
                            "{}",
                            certificate.heads.size(), problem.size()));
  MGPU_TRY(ClaimCheck(problem, true, certificate.heads).run());
  MGPU_TRY(ClaimCheck(problem, false, certificate.tails).run());
  if (problem.size() == 0)
    return {};
  if (auto *search = std::get_if<SearchArgument>(&certificate.argument))
    return checkSearch(*search, certificate.boundUs, problem);
  MGPU_TRY_ASSIGN(const double proven, provenBy(certificate, problem));
  if (!isWithin(certificate.boundUs, proven))
    return fail(ErrorKind::Invalid,
                fmt::format("certificate: the bound is {} us, its argument "
                            "gives {} us",
                            certificate.boundUs, proven));
  return {};
}

} // namespace mgpu::planner
