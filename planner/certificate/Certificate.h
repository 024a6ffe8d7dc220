// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_CERTIFICATE_CERTIFICATE_H
#define MGPU_PLANNER_CERTIFICATE_CERTIFICATE_H

// The witness of a lower bound: why no schedule of a problem ends earlier. It
// claims for each node a head (the node cannot start before) and a tail (so
// much follows its end in every schedule), each with its reason, and then one
// argument that joins them. check() verifies it without search, and shares
// nothing with what made it but the problem.

#include "planner/dag/Dag.h"
#include "planner/schedule/problem/Problem.h"

#include <variant>

namespace mgpu::planner {

/// It is at least 0.
struct NoReason {};
/// It is at least that of a neighbour (a predecessor of a head, a successor of
/// a tail) plus the neighbour's duration.
struct PathReason {
  uint32_t node = 0;
};
/// Some ancestors of the node (for a tail: descendants) work on one resource
/// and have a head of at least `from`. They all start at or after `from`, and
/// end before the node starts. So it is at least `from` plus the sum of their
/// work.
struct WorkReason {
  uint32_t resource = 0;
  double from = 0;
};
using Reason = std::variant<NoReason, PathReason, WorkReason>;

struct Claim {
  double us = 0;
  Reason reason;
};

/// The bound is the head, the duration and the tail of one node.
struct NodeArgument {
  uint32_t node = 0;
};
/// The nodes on one resource whose head is at least `head` and whose tail is at
/// least `tail`: the bound is `head` + the sum of their work + `tail`.
struct SetArgument {
  uint32_t resource = 0;
  double head = 0, tail = 0;
};

/// Buffers of a device are live for as long as the longest way between two of
/// their users takes (to the end of all, where they are kept), and those live
/// at one time take no more than its memory does beside the resident bytes.
/// Buffers of less than `small` bytes count for nothing, and then one beside
/// which no other fits, which is larger than the memory without `small`, counts
/// as all of it (Fekete and Schepers 2001); `small` is half the memory at most.
/// Over the buffers that none uses before `head` and after whose users `tail`
/// follows, the bound is `head` + the sum of times by shares of the memory +
/// `tail`.
struct MemoryArgument {
  uint32_t device = 0;
  uint64_t small = 0;
  double head = 0, tail = 0;
};
/// Buffers of less than this share of the memory, and all those of a problem of
/// more nodes, are only known to be live as long as the longest of their users.
inline constexpr uint64_t mostWaysShare = 4096;
inline constexpr uint32_t mostWaysNodes = 30000;

/// A decision of a search: the first of two nodes of one unit stream goes
/// before the second, and then, when that is done with, the second before the
/// first. Two equal nodes stand for a leaf.
struct Branch {
  uint32_t first = 0, second = 0;
};
/// A search found nothing shorter than the bound. Its decisions as it came to
/// them, depth first: at each leaf, what was decided on the way there leaves no
/// schedule that is shorter.
struct SearchArgument {
  std::vector<Branch> branches;
};
inline constexpr uint32_t maxSearchedNodes = 128;

struct Certificate {
  Phase phase = Phase::Replay; ///< of the plan, which the problem is of
  double boundUs = 0;
  std::variant<NodeArgument, SetArgument, MemoryArgument, SearchArgument>
      argument;
  std::vector<Claim> heads, tails; ///< by node
};

/// Verifies every claim in topological order, then the argument. Claims may
/// exceed what their reasons give by a part in 10^10, for sums in another order
/// round differently. The error names the node. Where a claim rests on work, it
/// takes nodes^2 / 8 bytes at most and nodes / 64 steps for each edge.
Result<void> check(const Certificate &certificate, const Problem &problem);

/// The text form of a plan's certificates, one for each of its phases:
/// readable, read back exactly.
std::string toText(std::span<const Certificate> certificates);
/// Errors name the line.
Result<std::vector<Certificate>> parseCertificates(std::string_view text);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_CERTIFICATE_CERTIFICATE_H
