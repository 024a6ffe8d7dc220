// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SESSION_TRANSFORMSPACE_H
#define MGPU_TUNER_SESSION_TRANSFORMSPACE_H

// Which of the planner's transforms a program can be given before it is
// planned: switches, and a number of chunks.

#include "db/Problem.h"
#include "planner/schedule/transform/Transform.h"
#include "tuner/space/ConfigSpace.h"

namespace mgpu::tuner {

/// In the order of planner::allTransforms, with one number of chunks at most.
using TransformList = std::vector<planner::TransformKind>;

/// A list as the values of parameters, which are also its pairs in the
/// database: "copies", "scatter", "bucket" and "split", 0 or 1, and "chunks".
inline constexpr size_t numTransformParameters = 5;
/// Off: 0; of "chunks" 1.
uint32_t valueOf(const TransformList &list, size_t parameter);

/// Adds a pair for each parameter that is not off: "bucket=on", "chunks=4".
void addPairs(const TransformList &list, db::Pairs &pairs);
/// What addPairs() added. Invalid for another value.
Result<TransformList> transformsFrom(const db::Pairs &pairs);
/// "bucket=on chunks=4"; empty for none.
std::string toText(const TransformList &list);

/// Of larger programs only the empty list is looked at: to know which
/// transforms change something all are made, on copies of the program.
inline constexpr size_t mostTransformedNodes = 4'000;
inline constexpr uint64_t mostTransformedConstants = uint64_t(16) << 20;

/// Every list of which each transform changes something where it stands, in
/// lexicographic order of the values, so that the empty one comes first. Of
/// those that leave the same program the first alone.
Result<std::vector<TransformList>> transformLists(const planner::Dag &dag);

/// The program after a list. Invalid where one of it changes nothing: then the
/// list is of another program.
Result<planner::Dag> transformed(const planner::Dag &dag,
                                 const TransformList &list);

/// The parameters by which `lists` differ, and which lists there are.
struct TransformChoices {
  /// By number of valueOf(); those that have one value in all lists left out.
  std::vector<size_t> parameters;
  std::vector<Parameter> described; ///< of the space, in the same order
  std::vector<TransformList> lists;

  static TransformChoices of(std::vector<TransformList> lists);
  /// Of the values of `parameters`; those left out are as in all lists. None
  /// where there is no such list.
  const TransformList *find(std::span<const double> values) const;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SESSION_TRANSFORMSPACE_H
