// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_LOOKUP_H
#define MGPU_DB_LOOKUP_H

// Graded look-up over a user's file and a site's.

#include "db/Database.h"
#include "db/StoreFile.h"

namespace mgpu::db {

/// One state of both files for several queries, as long as it lives.
class ReadState {
public:
  static Result<ReadState> begin(StoreFile &user, StoreFile *site);

private:
  explicit ReadState(Transaction user) : user(std::move(user)) {}
  Transaction user;
  std::optional<Transaction> site;
};

struct Found {
  Winner winner;
  bool fromSite = false;
};

/// The better of the two files' winners; one that failed in the other file is
/// none, and then all trials of both decide. `site` may be null. Within a
/// ReadState.
Result<std::optional<Found>> findExact(StoreFile &user, StoreFile *site,
                                       const TuningProblem &problem);

/// TuningStore::lookUp().
Result<LookUp> lookUp(StoreFile &user, StoreFile *site,
                      const TuningProblem &problem);

/// How far apart two shapes are: for each number in both the octaves between
/// them; a word that differs, or a name in one of them alone, counts like a
/// factor of 256.
double shapeDistance(const std::string &a, const std::string &b);

} // namespace mgpu::db

#endif // MGPU_DB_LOOKUP_H
