// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_IMPORT_H
#define MGPU_TESTS_CONFORMANCE_IMPORT_H

// The compiler half as the conformance tests use it: text in, DAG and kernel
// objects out.

#include "planner/dag/Program.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mgpu::conformance {

struct ImportRequest {
  std::string text, name;
  std::string entry = "main";
  std::map<std::string, std::string> scalars;
  bool racesAreErrors = false;
  uint64_t nodeLimit = 100'000;
  uint64_t rollFrom = 2;
  bool fuse = true;                ///< planner::ParseOptions
  bool fuseNarrowProducts = false; ///< too, as --variant mma does
  /// Costs of exchanges are random, by this seed; 0: bytes.
  uint64_t costSeed = 0;
};

struct ImportOutcome {
  Result<planner::Dag> dag;
  std::vector<planner::ProgramArgument> arguments, results; ///< beside `dag`
  uint32_t numRaces = 0;
  std::vector<std::string> errors; ///< "place: text", error diagnostics only
};

/// Imports programs in one context, which is not cheap to make.
class Importer {
public:
  Importer();
  ~Importer();
  ImportOutcome import(const ImportRequest &request);

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Compiled kernels by KernelSpec.hash: equal hash means equal behaviour, which
/// is itself under test here.
class KernelCache {
public:
  KernelCache();
  ~KernelCache();
  KernelCache(KernelCache &&) noexcept;

  /// By KernelId of `dag`.
  Result<std::vector<std::vector<std::byte>>> compile(const planner::Dag &dag);
  size_t size() const { return objects.size(); }

private:
  struct State;
  std::unique_ptr<State> state; ///< what kernels are parsed into
  std::map<std::string, std::vector<std::byte>> objects;
};

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_IMPORT_H
