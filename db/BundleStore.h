// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_BUNDLESTORE_H
#define MGPU_DB_BUNDLESTORE_H

// Programs, plans and compiled kernels as rows. A bundle is a file with those
// of one program.

#include "db/Database.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace mgpu::db {

/// A program and where it comes from; `text` is planner/dag/ProgramText.h's.
struct ProgramRecord {
  std::string entry;
  std::string source;     ///< the file it was imported from, as named then
  std::string sourceHash; ///< SHA-256 of that file; "" where it was a pipe
  std::string version;    ///< version of the mgpu that made the bundle
  std::string options;    ///< "key=value" lines: what else decided `text`
  std::string text;
  bool operator==(const ProgramRecord &) const = default;
};

/// A plan as planner/plan's text form, for a kind of target.
struct PlanRecord {
  std::string target; ///< "host"
  std::string text;
  bool operator==(const PlanRecord &) const = default;
};

/// A kernel in one form: CUDA C++, a cubin, a shared object of the host.
struct ImageRecord {
  uint32_t kernel = 0; ///< its number in the program
  std::string form;    ///< "host", "cuda", "cubin"
  std::string target;  ///< "x86-64-v3", "", "sm_90"
  std::string facts;   ///< what a launcher must know of it; the form decides
  std::string blob;    ///< SHA-256 of its bytes
  bool operator==(const ImageRecord &) const = default;
};

struct BundleRecord {
  ProgramRecord program;
  std::vector<PlanRecord> plans;
  std::vector<ImageRecord> images;
  bool operator==(const BundleRecord &) const = default;
};

/// Writes `path` whole or not at all; the same record and blobs give the same
/// bytes. `blobs` are by their SHA-256: those of the images, and what the
/// program's text names.
Result<void>
writeBundle(const std::string &path, const BundleRecord &record,
            const std::map<std::string, std::vector<std::byte>> &blobs);

/// A bundle that may come from anyone. Its record is read and checked against
/// its seals when it is opened, a blob against its hash when it is read.
class BundleStore {
public:
  /// Errors: Usage where it cannot be opened, Invalid where it is not a bundle
  /// or damaged, Unsupported where a newer mgpu made it.
  static Result<BundleStore> open(const std::string &path);
  /// The bytes of a bundle, which outlive it; `name` is what messages call
  /// them.
  static Result<BundleStore> ofBytes(std::span<const std::byte> bytes,
                                     const std::string &name);

  const BundleRecord &record() const { return contents; }
  /// Invalid where it is missing or is not what the hash says.
  Result<std::vector<std::byte>> blob(const std::string &hash);

private:
  explicit BundleStore(Database database) : database(std::move(database)) {}
  Result<void> checkVersion();
  static Result<BundleStore> check(Database database, uint64_t bytes);
  Result<void> checkLength(uint64_t bytes);
  Result<void> checkSchema();
  Result<void> read();

  Database database;
  BundleRecord contents;
};

/// Whether the file begins like a database, whatever it is called.
bool isDatabaseFile(const std::string &path);

} // namespace mgpu::db

#endif // MGPU_DB_BUNDLESTORE_H
