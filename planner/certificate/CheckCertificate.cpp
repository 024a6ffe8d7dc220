// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/certificate/CheckMemory.h"
#include "planner/certificate/CheckSearch.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace mgpu::planner {

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
    for (uint32_t k = 0; k < nodes; ++k) {
      const uint32_t node = ofHeads ? k : nodes - 1 - k;
      if (needsAncestors)
        collectAncestors(node);
      MGPU_TRY_ASSIGN(const double proven, provenBy(node));
      if (!isWithin(claims[node].us, proven))
        return bad(node, fmt::format("is {} us, its reason gives {} us",
                                     claims[node].us, proven));
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
    row.assign((problem.size() + 63) / 64, 0);
    for (uint32_t other : near(node)) {
      const std::vector<uint64_t> &theirs = ancestors[other];
      for (size_t word = 0; word < row.size(); ++word)
        row[word] |= theirs[word];
      row[other / 64] |= uint64_t(1) << (other % 64);
      if (--open[other] == 0)
        ancestors[other] = {};
    }
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
    for (uint32_t i = 0; i < problem.size(); ++i)
      if ((ancestors[node][i / 64] >> (i % 64) & 1) &&
          claims[i].us >= work->from)
        for (const ResourceUse &use : problem.uses[i])
          if (use.resource == work->resource) {
            sum += problem.durations[i] * use.share;
            isEmpty = false;
          }
    return isEmpty ? 0 : work->from + sum; // an empty set starts nowhere
  }

  const Problem &problem;
  const bool ofHeads;
  const std::vector<Claim> &claims;
  std::vector<std::vector<uint64_t>> ancestors; ///< bits, of open nodes
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
