// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_TUNINGPROBLEM_H
#define MGPU_DB_TUNINGPROBLEM_H

// The problem that a result solves. It is known by its content, never by a
// number.

#include "support/Result.h"

#include <map>
#include <string>
#include <string_view>

namespace mgpu::db {

/// "block_x=32,tile=4": by ascending name; in names and values a backslash
/// stands before '\', ',' and '=', and a byte that is not printable ASCII is
/// \xNN.
using Pairs = std::map<std::string, std::string>;
std::string pairsText(const Pairs &pairs);
/// The inverse. Invalid where the text is not what pairsText() writes.
Result<Pairs> parsePairs(std::string_view text);

/// Two runs measure the same thing where all of it is equal.
struct TuningProblem {
  /// The subject of tuning, without its sizes: a program's or plan's canonical
  /// text, or the SHA-256 of one that is long. Code generation that changes
  /// kernels must change it.
  std::string program;
  std::string shape;        ///< sizes and element types, as pairsText()
  std::string device;       ///< "NVIDIA H100 80GB HBM3 x4"
  std::string architecture; ///< "sm_90", "x86-64-v3": what the kernels are for
  std::string driver;       ///< driver, toolkit and library versions
  std::string
      environment;    ///< topology, clock policy, threads: what sways times
  std::string policy; ///< how it is measured: cold or hot, repeats, unit

  /// "program=...\nshape=...\n" and so on, in the order above; a backslash
  /// stands before '\', and a byte that is not printable ASCII is \xNN.
  std::string text() const;
  /// The inverse of text().
  static Result<TuningProblem> parse(std::string_view text);
  /// SHA-256 of text(): 64 hexadecimal digits.
  std::string key() const;
  /// The key of `program` and `architecture`, which problems have in common
  /// that may stand in for each other.
  std::string familyKey() const;
  /// The key of how it was measured: `driver`, `environment` and `policy`.
  std::string settingKey() const;

  bool operator==(const TuningProblem &) const = default;
};

} // namespace mgpu::db

#endif // MGPU_DB_TUNINGPROBLEM_H
