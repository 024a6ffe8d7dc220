// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_BUILDDAG_H
#define MGPU_PLANNER_IMPORT_BUILDDAG_H

// Program in, DAG out: one walk that interprets the host code of a module for
// given scalar arguments and records every launch, copy and collective with
// the bytes it touches. The walk also checks the program's own streams, waits
// and syncs: races, deadlocks, ownership, use after free (docs/semantics.md).

#include "dialect/conversion/ExchangeCost.h"
#include "dialect/conversion/FuseProducts.h"
#include "planner/dag/Program.h"
#include "planner/dag/Shardings.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <string>
#include <vector>

namespace mgpu::planner {

struct ImportOptions {
  std::string entry = "main";
  /// Specialised scalars by name or number, as written by the user.
  std::map<std::string, std::string> scalars;
  /// Roles by name or number; they win over `mgpu.role`.
  std::map<std::string, std::string> roles;
  uint64_t nodeLimit = 4'000'000;
  /// The entry's largest loop stays rolled from that many trips on (Dag::loop),
  /// if it can; shorter ones are unrolled, so that their trips may overlap.
  uint64_t rollFrom = 8;
  /// `check`: a proven race is an error. `run`: it is a warning and program
  /// order is kept.
  bool racesAreErrors = true;
  /// Kernels come with their source, which only who compiles them needs: to
  /// print many takes longer than the rest of the import.
  bool kernelTexts = true;
  /// Microseconds that calls of unknown meaning take, by the names called.
  std::map<std::string, double> costs = {};
};

struct ImportedProgram : Program {
  uint32_t numRaces = 0;
};

/// Diagnostics go to the module's context, at the ops concerned; the Error
/// repeats the first. Kinds: Invalid for a wrong program, Unsupported for what
/// this version cannot capture, Usage for a missing or malformed scalar.
Result<ImportedProgram> buildDag(mlir::ModuleOp module,
                                 const ImportOptions &options);

using conversion::FuseProducts;

struct ParseOptions {
  /// The program, where the caller has read it; else null.
  const std::string *text = nullptr;
  /// The function whose host code, with what it calls, is lowered.
  std::string entry = "main";
  /// The most operations with all calls inlined, as in ImportOptions.
  uint64_t nodeLimit = 4'000'000;
  /// linalg operations and parallel loops share launches where they can.
  bool fuse = true;
  FuseProducts products = FuseProducts::Wide;
  bool attention = false; ///< attention is one launch
  /// How many devices run a function over tensors; 0: as many as it says.
  int64_t devices = 0;
  /// The meshes of ImportOptions.
  std::map<std::string, std::string> meshes = {};
  /// The values and roles of ImportOptions. A function over tensors is
  /// specialised for the values of its integer scalars; values of other
  /// arguments are not looked at.
  std::map<std::string, std::string> scalars = {}, roles = {};
  bool reportSharding = false; ///< fill ParsedProgram::sharding
  /// The order of an mpmd program, as in ImportOptions of the pipeline.
  std::string schedule = "";
  bool remat = false;
  bool isQuiet = false;
  /// Changes of its grid, mesh and annotations.
  GivenShardings given = {};
  bool keepText = false; ///< fill the text of ParsedProgram::shardings
  /// The cost by which tensors that change their layout are resharded.
  conversion::ExchangeCost exchangeCost = nullptr;
  /// A function over tensors becomes the program of device 0, which stands for
  /// all. Errors: Unsupported for others, and where devices differ.
  bool oneDevice = false;
  /// The kernels of custom calls, as in ImportOptions of the pipeline, with an
  /// entry in each: FILE.cu:ENTRY.
  std::map<std::string, std::string> customs = {};
  /// ImportOptions of the pipeline has them too.
  uint32_t replicas = 0, partitions = 0;
};

struct ParsedProgram {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string entry; ///< the function that was asked for, or the only one
  /// "X at FILE:LINE:COLUMN with Y at ...: why", for computations on device
  /// buffers that follow each other and share no launch.
  std::vector<std::string> notFused;
  /// "NAME at FILE:LINE:COLUMN: ...", for launches whose form gives other bits
  /// than the operations that they compute, one by one.
  std::vector<std::string> changed = {};
  /// The choices for a partitioned program: a line for each layout, and for
  /// each collective that it takes.
  std::vector<std::string> sharding = {};
  /// The meshes of a program over several.
  std::vector<MeshDevices> meshes = {};
  /// For the schedule "auto": the named ones that the program can take.
  std::vector<std::string> schedules = {};
  /// The shardings of a program with a shard.grid, as it was given; the text is
  /// of the program as `given` changed it.
  Shardings shardings = {};
  /// The arguments and results of one device (dialect/conversion/SpmdPhases.h).
  std::string deviceCall = {};
};

/// Parses `path` ("-" is standard input), keeps the SSA names of function
/// arguments and buffers as NameLocs, and gives all device work one form, by
/// the passes of dialect/conversion. Its messages on stderr, with the lines
/// concerned, go to `onDiagnostic` as well. Kinds of errors: Invalid for a
/// wrong program, Unsupported for what has no form as a launch.
Result<ParsedProgram> parseProgram(
    const std::string &path, mlir::MLIRContext &context,
    llvm::function_ref<void(mlir::Diagnostic &)> onDiagnostic = nullptr,
    const ParseOptions &options = {});

/// Parses text in memory; `name` stands for it in locations. Diagnostics go to
/// the context's handlers alone.
Result<ParsedProgram> parseProgramText(llvm::StringRef text,
                                       const std::string &name,
                                       mlir::MLIRContext &context,
                                       const ParseOptions &options = {});

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_BUILDDAG_H
