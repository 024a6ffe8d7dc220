// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_LOADEDPROGRAM_H
#define MGPU_PIPELINE_PROGRAM_LOADEDPROGRAM_H

// A program as the later steps take it: its DAG and arguments, what the user
// asked for when it was loaded, and the compiler that can build its kernels.

#include "capture/replay/Bundle.h"
#include "pipeline/program/Variants.h"
#include "planner/dag/Program.h"
#include "planner/dag/Shardings.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mgpu::planner {
class LatencyEstimator;
class Machine;
} // namespace mgpu::planner

namespace mgpu::pipeline {

class Compiler;
/// The compiler of a build without the compiler half. Each call fails with
/// Unsupported and a sentence that says so.
const Compiler &noCompiler();

/// Which arguments have which role, as the user wrote it
/// (pipeline/program/Roles.h).
struct RoleOptions {
  /// By an argument's name or number.
  std::map<std::string, std::string> roles = {};
  /// Names in which `*` is any letters, and roles, in the order of the options.
  std::vector<std::pair<std::string, std::string>> rolePatterns = {};
  /// --resident-except: names, numbers and patterns; none: it is not given.
  std::optional<std::vector<std::string>> residentExcept = std::nullopt;
};

/// Arguments that rolePatterns and residentExcept made resident.
struct MadeResident {
  size_t arguments = 0;
  uint64_t bytes = 0;
};

/// The options that an .mlir program is specialised by.
struct ImportOptions : RoleOptions {
  std::string file;
  /// The contents of the file, where it is the standard input and was read.
  std::shared_ptr<const std::string> text = nullptr;
  std::string entry = "main";
  /// Values by an argument's name or number, as the user wrote them.
  std::map<std::string, std::string> arguments;
  /// How many devices run a function over tensors; 0: as many as its layouts
  /// say, else one.
  uint64_t devices = 0;
  /// The meshes of mpmd's named computations and tensors, by name.
  std::map<std::string, std::string> meshes;
  /// The kernels of custom calls by the names that are called: FILE.cu:ENTRY,
  /// or FILE.cu where the entry has the call's name. Or functions of a library,
  /// LIB.so:FUNCTION; or "registered", for one that the process registers.
  std::map<std::string, std::string> customs;
  /// Microseconds that custom calls without a kernel take, by their names.
  std::map<std::string, double> costs;
  /// The order of an mpmd program's fragments (docs/schedules.md); empty is the
  /// planner's own, and "auto" what chooseOrder() finds best.
  std::string schedule;
  /// Backward work computes forward work again, rather than keep its results.
  bool remat = false;
  planner::GivenShardings shardings; ///< instead of what the program says
  bool oneDevice = false; ///< device 0 of a function over tensors is all there
                          ///< is: it stands for the others, and cannot run
  bool keepText = false;  ///< fill the text of the shardings
  /// Not 0: a program over tensors is called by so many devices, each with
  /// arguments and results of its own, as a client of PJRT does.
  uint32_t replicas = 0, partitions = 0;
  bool isQuiet = false;           ///< diagnostics are not printed
  bool reportSharding = false;    ///< fill LoadedProgram::sharding
  uint64_t nodeLimit = 4'000'000; ///< most nodes of the unrolled program
  uint64_t rollFrom = 8; ///< trips from which the outermost loop stays rolled
  bool fuse = true;      ///< several linalg operations may share a launch
  /// Nothing takes a form whose bits are others than those of the operations
  /// one by one.
  bool exact = false;
  Variants variants;           ///< of how GPUs compute and launch
  bool racesAreErrors = false; ///< a proven race fails; else it is a warning
  /// Kernels come with their source. Callers that compile none turn it off.
  bool kernelTexts = true;
  /// Kernels of a program with matrix products come with their source anyway.
  bool productTexts = false;
  /// The times of exchanges between devices: a tensor changes its layout in the
  /// way that takes least. Null: by bytes; loadProgram() takes the machine's.
  std::shared_ptr<const planner::LatencyEstimator> times = nullptr;
};

struct LoadOptions : ImportOptions {
  const Compiler *compiler = &noCompiler();
  std::string target;   ///< "host:4", "cuda:0"; empty: the host
  std::string database; ///< empty: MGPU_DB, or the user's state directory
  /// The target's, to plan for; loadProgram() opens it where it is null.
  std::shared_ptr<const planner::Machine> machine = nullptr;
  /// The database is asked which variants have passed.
  bool usesRecord = true;
  std::string step; ///< of a recorded trace: "ProfilerStep#3"; "": all of it
  uint64_t compileSeconds = 600; ///< time limit of NVRTC per program; 0: none
  /// Sizes that a .pt2 file leaves open, by name
  /// (pipeline/torch/ExportedGraph.h).
  std::map<std::string, std::string> dims;
  /// The options the user typed ("--role", ...). A file format that has no use
  /// for one of them refuses it.
  std::set<std::string> given;
};

/// A diagnostic as it was printed, for --json.
struct Message {
  std::string severity, location, text;
};

struct LoadedProgram : planner::Program {
  LoadOptions from; ///< as the user asked
  /// The variants of `from`, with the GPUs' defaults (VariantRecord.h).
  Variants variants;
  std::vector<bool>
      needsValue; ///< by argument: it is read before it is written
  uint32_t numRaces = 0;
  MadeResident madeResident;
  std::vector<std::string> notFused; ///< as planner::ParsedProgram has it
  std::vector<std::string> changed;  ///< the same
  std::vector<std::string> sharding; ///< the same
  planner::Shardings shardings;      ///< the same
  std::vector<planner::MeshDevices> meshes; ///< the same
  std::vector<std::string> schedules;       ///< the same
  std::shared_ptr<capture::Bundle> bundle;  ///< null if it is not from a bundle
  std::string deviceCall; ///< as planner::ParsedProgram has it
  double recordedUs = 0;  ///< how long a recorded trace took; else 0

  const Compiler &compiler() const { return *from.compiler; }
  /// Whether it is known only by what its nodes cost, and cannot run.
  bool isOpaque() const;
};

/// The argument (or, with `results`, result) that the user means by the name
/// or number `key` of `option`.
Result<const planner::ProgramArgument *> findArgument(const planner::Program &,
                                                      const std::string &key,
                                                      const char *option,
                                                      bool results);

/// The function of a shared library that the calls of a name are.
struct LibraryFunction {
  std::string file, symbol;
};
/// "LIB.so:FUNCTION", or "LIB.so" where the function has the name of the call;
/// nothing where `custom` is not of a library.
std::optional<LibraryFunction> libraryFunction(const std::string &call,
                                               const std::string &custom);

/// Unsupported, with "and `what`", where the program isOpaque().
Result<void> checkHasKernels(const LoadedProgram &program, const char *what);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_LOADEDPROGRAM_H
