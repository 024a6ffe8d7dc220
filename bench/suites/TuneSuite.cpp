// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures what tuning is worth on the examples mlp and heat: the configuration
// in a database against the default, and against C++ (TuneBaselines.h), each by
// samples in turn. The outputs of C++ are checked against the program's.
//   bench-tune examples/mlp/mlp.mlir --db FILE [--seconds 10]
#include "bench/suites/TuneBaselines.h"
#include "pipeline/build/Prepare.h"
#include "pipeline/compiler/MlirCompiler.h"
#include "pipeline/program/Load.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <iostream>

namespace {

using namespace mgpu;
using Values = std::vector<float>;

Values floatsOf(std::span<const std::byte> bytes) {
  Values values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// The computation in C++, on the inputs of the program.
struct Baseline {
  std::vector<Values> inputs; ///< by argument
  Values output;
  std::function<void()> prepare, run;
};

Result<std::unique_ptr<Baseline>>
makeBaseline(const std::string &file,
             std::span<const tuner::ProgramInput> inputs) {
  auto made = std::make_unique<Baseline>();
  Baseline &base = *made;
  for (const tuner::ProgramInput &input : inputs)
    base.inputs.push_back(floatsOf(input.bytes));
  if (file.ends_with("mlp.mlir") && inputs.size() == 3) {
    base.output.resize(32 * 64);
    base.prepare = [] {};
    base.run = [&base] {
      bench::naiveMlp(base.inputs[0].data(), base.inputs[1].data(),
                      base.inputs[2].data(), base.output.data());
    };
  } else if (file.ends_with("heat.mlir") && inputs.size() == 1) {
    base.prepare = [&base] { base.output = base.inputs[0]; };
    base.run = [&base] { bench::naiveHeat(base.output.data()); };
  } else {
    return fail(ErrorKind::Usage,
                fmt::format("'{}' has no baseline in C++: give "
                            "examples/mlp/mlp.mlir or examples/heat/heat.mlir",
                            file));
  }
  return made;
}

/// Sums of a hundred products in two orders differ by some 1e-6 of their size.
Result<void> checkOutput(const Values &mine, const Values &theirs) {
  double worst = 0;
  if (mine.size() != theirs.size())
    return fail(ErrorKind::Internal, "C++ and the program give outputs of "
                                     "different sizes");
  for (size_t k = 0; k < mine.size(); ++k)
    worst = std::max(worst, double(std::abs(mine[k] - theirs[k])) /
                                std::max(std::abs(double(theirs[k])), 1e-3));
  if (!(worst < 1e-4))
    return fail(
        ErrorKind::Internal,
        fmt::format("C++ and the program differ by {} of a value", worst));
  return {};
}

Result<void> measure(const pipeline::LoadOptions &options, double seconds) {
  MGPU_TRY_ASSIGN(pipeline::LoadedProgram program,
                  pipeline::loadProgram(options));
  MGPU_TRY_ASSIGN(auto context, pipeline::makeTuneContext(program));
  MGPU_TRY_ASSIGN(auto inputs, pipeline::programInputs(program));
  MGPU_TRY_ASSIGN(auto baseline, makeBaseline(options.file, inputs));
  tuner::ProgramData data(program.dag, inputs);
  MGPU_TRY_ASSIGN(auto evaluator,
                  tuner::Evaluator::create(
                      pipeline::tuningSubject(program, context, data), {}));
  MGPU_TRY_ASSIGN(auto decision,
                  pipeline::readDecision(program, context, options.database));
  if (!decision)
    return fail(ErrorKind::Usage,
                fmt::format("'{}' has nothing for this program: run `mgpu-tune "
                            "tune` first",
                            options.database));
  MGPU_TRY_ASSIGN(auto realized, evaluator->realize(decision->config));
  if (!realized)
    return fail(ErrorKind::Invalid, realized.error().what);
  MGPU_TRY_ASSIGN(auto tuned, evaluator->admit(*realized));
  if (!tuned)
    return fail(ErrorKind::Invalid, tuned.error().what);

  // One run of C++ against one of the program: its outputs are after two
  // replays, which is two runs of a program that works in place.
  auto outputs = tuned->outputs(0);
  if (!outputs)
    return fail(ErrorKind::Invalid, outputs.error().what);
  baseline->prepare();
  baseline->run();
  if (options.file.ends_with("heat.mlir"))
    baseline->run();
  MGPU_TRY(checkOutput(baseline->output, floatsOf(*outputs)));

  bench::Sampler cpp(
      [&]() -> Result<void> {
        baseline->prepare();
        return {};
      },
      [&]() -> Result<void> {
        baseline->run();
        return {};
      });
  std::optional<Fault> fault, other;
  bench::HeadToHeadOptions meeting;
  meeting.maxSeconds = seconds;
  meeting.mostPairs = 4096;
  meeting.comparison.precision = 0.005;
  bench::Subject mine = subjectOf(*tuned, fault);
  for (auto &[name, subject] :
       {std::pair<const char *, bench::Subject>(
            "the default", subjectOf(evaluator->defaultCandidate(), other)),
        std::pair<const char *, bench::Subject>(
            "naive C++ -O3", [&] { return cpp.sample(); })}) {
    MGPU_TRY_ASSIGN(auto met, bench::headToHead(mine, subject, meeting));
    fmt::print("{}: {}; {:.2f} x; {:.2f} us and {:.2f} us, {} pairs, {} "
               "discarded\n",
               options.file, bench::describe(met.comparison, "tuned", name),
               1 / (1 + met.comparison.change.middle),
               met.a.median.middle * 1e6, met.b.median.middle * 1e6,
               met.comparison.pairs, met.discarded);
    std::cout.flush();
  }
  return {};
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Measures tuned examples against the default and naive C++.",
               "bench-tune");
  pipeline::LoadOptions options;
  options.compiler = &pipeline::mlirCompiler();
  double seconds = 10;
  app.add_option("FILE", options.file, "examples/mlp/mlp.mlir or heat")
      ->required();
  app.add_option("--db", options.database, "Where `mgpu-tune tune` stored it")
      ->required();
  app.add_option("--seconds", seconds, "Of each comparison, at most")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (auto done = measure(options, seconds); !done) {
    fmt::print(stderr, "bench-tune: error: {}\n", done.error().message);
    return int(done.error().kind);
  }
  return 0;
}
