// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_RESHARDSEARCH_H
#define MGPU_DIALECT_CONVERSION_SPMD_RESHARDSEARCH_H

// The shortest way through the layouts between two, by what steps cost
// (Dijkstra 1959).

#include "dialect/conversion/spmd/Reshard.h"

namespace mgpu::conversion {

/// A layout on the way.
struct ReshardPlace {
  llvm::SmallVector<Cut> cuts;
  unsigned reduced = 0;  ///< how many reductions are done
  bool isUndone = false; ///< something was gathered, so nothing is copied now
  double cost = 0;
  unsigned exchanges = 0;
  int before = -1;         ///< the place before
  ReshardSteps steps = {}; ///< from there to here
  bool isFinal = false;    ///< no way here costs less

  bool isSame(const ReshardPlace &other) const {
    return reduced == other.reduced && isUndone == other.isUndone &&
           cuts == other.cuts;
  }
  bool isBefore(const ReshardPlace &other) const {
    return std::tie(cost, exchanges) < std::tie(other.cost, other.exchanges);
  }
};

/// Finds the steps of one request. ReshardPlaces.cpp says what may be done in a
/// place, ReshardSearch.cpp goes from place to place.
class ReshardSearch {
public:
  ReshardSearch(const ReshardRequest &request, const Reshards &reshards)
      : request(request), reshards(reshards), target(cutsOf(request.to)),
        full(request.full.getShape()) {}
  ReshardSteps run();

private:
  bool isEven(unsigned dim) const;
  bool wants(const ReshardPlace &at, unsigned dim,
             llvm::ArrayRef<int64_t> axes) const;
  bool isTaken(const ReshardPlace &at, int64_t axis) const;
  int64_t bytesAt(const ReshardPlace &at) const;
  void planReductions(ReshardPlace start);
  bool sliceOne(ReshardPlace &at) const;
  void slice(ReshardPlace &at) const;
  void leave(int from);
  void reduceAt(int from);
  void undoAt(int from);
  void undo(int from, unsigned dim, llvm::ArrayRef<int64_t> axes);
  void go(int from, ReshardStep step, ReshardPlace to);
  ReshardSteps stepsTo(int place) const;

  const ReshardRequest &request;
  const Reshards &reshards;
  llvm::SmallVector<Cut> target;
  llvm::ArrayRef<int64_t> full;
  llvm::SmallVector<Axes> reductions; ///< in the order in which they are done
  std::vector<ReshardPlace> places;
};

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_RESHARDSEARCH_H
