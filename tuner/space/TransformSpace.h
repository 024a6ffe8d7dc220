// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SPACE_TRANSFORMSPACE_H
#define MGPU_TUNER_SPACE_TRANSFORMSPACE_H

// Which of the planner's transforms a program can be given before it is
// planned: switches, and a number of chunks for each group of collectives.

#include "db/Trial.h"
#include "planner/schedule/transform/Transform.h"
#include "tuner/space/ConfigSpace.h"

#include <map>
#include <set>

namespace mgpu::tuner {

/// In the order of planner::allTransforms, with one kind of chunks at most.
using TransformList = std::vector<planner::Transform>;

/// A parameter of lists, named as its pair in the database: "bucket", which is
/// "on", or "chunks.0", the number of chunks of a group of collectives.
struct TransformParameter {
  planner::TransformKind kind = planner::TransformKind::Copies;
  /// The group of a Chunk, as chunkGroups() numbers them in the program that
  /// the transforms before it leave.
  uint32_t group = 0;

  std::string name() const;
  auto operator<=>(const TransformParameter &) const = default;
};
/// 0 if it is off. For chunks 1 if it is off, or the program has no such group.
uint32_t valueOf(const TransformList &list,
                 const TransformParameter &parameter);

/// Adds a pair for each switch that is on, and for the chunks of every group
/// where any is cut: "bucket=on", "chunks.0=4", "chunks.1=1".
void addPairs(const TransformList &list, db::Pairs &pairs);
/// Reads what addPairs() added, and "chunks=4", one number for all groups, as
/// it was stored before each had its own. Invalid for another value.
Result<TransformList> transformsFrom(const db::Pairs &pairs);
/// "bucket=on chunks.0=4"; empty for none.
std::string toText(const TransformList &list);

/// Larger programs have the empty list only: to know which transforms change
/// something, all are made on copies of the program.
inline constexpr size_t mostTransformedNodes = 4'000;
inline constexpr uint64_t mostTransformedConstants = uint64_t(16) << 20;

/// Every list in which each transform changes something where it stands, the
/// empty one first. If several leave the same program, only the first is given.
/// If many groups of collectives can be cut, those of the most bytes have a
/// number each, and the others one together: the lists after the same
/// transforms are at most 64, and fewer the larger the program is.
Result<std::vector<TransformList>> transformLists(const planner::Dag &dag);

/// The program after a list. Invalid if one of its transforms changes nothing:
/// then the list is for another program.
Result<planner::Dag> transformed(const planner::Dag &dag,
                                 const TransformList &list);

/// The parameters by which lists differ, and which lists there are.
class TransformChoices {
public:
  explicit TransformChoices(std::vector<TransformList> lists);

  /// The parameters that have more than one value in the lists.
  const std::vector<TransformParameter> &parameters() const { return varied; }
  /// The parameters of the space, in the same order.
  const std::vector<Parameter> &described() const { return descriptions; }
  /// Whether values of the first so many parameters are those of a list.
  bool begins(std::span<const double> values) const;
  /// The list with these values of all parameters; null if there is none.
  const TransformList *find(std::span<const double> values) const;
  /// Its values; none if it is not one of the lists.
  std::optional<std::vector<double>> valuesOf(const TransformList &list) const;

private:
  std::vector<TransformParameter> varied;
  std::vector<Parameter> descriptions;
  std::map<std::vector<double>, TransformList> lists; ///< by their values
  std::set<std::vector<double>> beginnings;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SPACE_TRANSFORMSPACE_H
