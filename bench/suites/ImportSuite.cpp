// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Measures what turning a program into a DAG costs, beside parsing and
// verifying the same text alone. `ops` counts every operation of the module,
// kernel bodies included. Per device a stream of launches, now and then a copy
// to the next device and an all_reduce over all four:
//   chain    every launch of a device on its one buffer
//   subviews each launch on its own of 1024 disjoint views of one buffer
//   buffers  each launch on its own of 1024 buffers
//   kernels  as chain, but no two launches have the same kernel
//   fresh    as subviews, the view made anew just before each launch
// `ratio` is this cost over that of parse and verify: medians of interleaved
// samples, which a busy machine slows alike. The kernels' texts are left out,
// as `check` and `plan` leave them out; `text_ratio` is with them, as `run` has
// it.

#include "bench/measure/Summary.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "kernels/lower/KernelDialects.h"
#include "planner/import/BuildDag.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <fmt/format.h>
#include <iterator>

namespace {

using namespace mgpu;

enum Shape : int { Chain, Subviews, Buffers, Kernels, Fresh };
constexpr const char *shapeNames[] = {"chain", "subviews", "buffers", "kernels",
                                      "fresh"};
constexpr int numDevices = 4, numParts = 1024, partLength = 64;

class Generator {
public:
  explicit Generator(Shape shape) : shape(shape) {}

  std::string generate(int64_t numOps) {
    line("mgpu.device_config @config #mgpu.device_config<numDevices = 4>");
    line("func.func @main() {{");
    ops += 4; // those two, the module and the return
    prologue();
    for (int k = 0; ops < numOps; ++k)
      round(k);
    line("  return\n}}");
    return std::move(text);
  }
  int64_t numOps() const { return ops; }

private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args &&...args) {
    fmt::format_to(std::back_inserter(text), format,
                   std::forward<Args>(args)...);
    text += '\n';
  }
  template <typename... Args>
  void op(fmt::format_string<Args...> format, Args &&...args) {
    line(format, std::forward<Args>(args)...);
    ++ops;
  }

  int parts() const {
    return shape == Subviews || shape == Buffers ? numParts : 1;
  }
  std::string viewType(int part) const {
    if (shape != Subviews && shape != Fresh)
      return "memref<64xf32>";
    return part == 0 ? "memref<64xf32, strided<[1]>>"
                     : fmt::format("memref<64xf32, strided<[1], offset: {}>>",
                                   part * partLength);
  }

  void subview(int device, int part, const std::string &name) {
    op("  {} = memref.subview %big{}[{}] [64] [1] : memref<65536xf32> to {}",
       name, device, part * partLength, viewType(part));
  }

  void prologue() {
    op("  %c1 = arith.constant 1 : index");
    op("  %c64 = arith.constant 64 : index");
    for (int d = 0; d < numDevices; ++d) {
      op("  %i{0} = arith.constant {0} : index", d);
      op("  %d{0} = mgpu.get_device %i{0} : !mgpu.device", d);
      op("  %s{0} = mgpu.create_stream %d{0} : !mgpu.device -> !mgpu.stream",
         d);
      op("  %from{0} = mgpu.alloc %d{0} : !mgpu.device -> memref<64xf32>", d);
      op("  %to{0} = mgpu.alloc %d{0} : !mgpu.device -> memref<64xf32>", d);
      if (shape == Subviews || shape == Fresh)
        op("  %big{0} = mgpu.alloc %d{0} : !mgpu.device -> memref<65536xf32>",
           d);
      for (int p = 0; shape != Fresh && p < parts(); ++p)
        if (shape == Subviews)
          subview(d, p, fmt::format("%v{}_{}", d, p));
        else
          op("  %v{0}_{1} = mgpu.alloc %d{0} : !mgpu.device -> memref<64xf32>",
             d, p);
    }
    op("  %comm = mgpu.create_communicator %d0, %d1, %d2, %d3 : !mgpu.device, "
       "!mgpu.device, !mgpu.device, !mgpu.device -> !mgpu.communicator");
  }

  // Sixteen launches, a copy between two devices, every fourth time a sum.
  void round(int k) {
    for (int launch = 0; launch < 4; ++launch)
      for (int d = 0; d < numDevices; ++d)
        this->launch(d, k * 4 + launch);
    int from = k % numDevices, to = (k + 1) % numDevices;
    op("  mgpu.stream_wait %s{}, %s{} : !mgpu.stream, !mgpu.stream", to, from);
    op("  mgpu.memcpy %to{0}, %from{1}, %d{0}, %d{1} stream %s{0} : "
       "!mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.device, "
       "!mgpu.device",
       to, from);
    op("  mgpu.stream_wait %s{}, %s{} : !mgpu.stream, !mgpu.stream", from, to);
    for (int d = 0; k % 4 == 3 && d < numDevices; ++d)
      op("  mgpu.all_reduce %from{0}, %from{0}, %comm, sum stream %s{0} : "
         "!mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.communicator",
         d);
  }

  void launch(int d, int k) {
    int part = k % (shape == Fresh ? numParts : parts());
    std::string view = fmt::format("%v{}_{}", d, part);
    if (shape == Fresh)
      subview(d, part, view = fmt::format("%w{}_{}", d, k));
    std::string type = viewType(part);
    op("  mgpu.launch %d{0} grid(%c1) block(%c64) stream %s{0} {{", d);
    op("    %t = gpu.thread_id x");
    op("    %x = memref.load {}[%t] : {}", view, type);
    op("    %f = arith.constant {}.0 : f32",
       shape == Kernels ? k * numDevices + d : k % 16);
    op("    %y = arith.mulf %x, %f : f32");
    op("    memref.store %y, {}[%t] : {}", view, type);
    line("  }}");
    ++ops; // its terminator
  }

  Shape shape;
  std::string text;
  int64_t ops = 0;
};

mlir::DialectRegistry programDialects() {
  mlir::DialectRegistry registry;
  registry.insert<ir::MgpuDialect>();
  kernels::registerHostEmitDialects(registry);
  return registry;
}

/// Seconds `work` takes in a context of its own with all dialects loaded; the
/// context's end is not counted: a command exits instead.
template <typename Work>
double seconds(Work work) {
  using Clock = std::chrono::steady_clock;
  mlir::MLIRContext context(programDialects(),
                            mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto start = Clock::now();
  auto kept = work(context);
  double taken = std::chrono::duration<double>(Clock::now() - start).count();
  if (!kept)
    return -1;
  return taken;
}

double parseAndVerify(const std::string &text) {
  return seconds([&](mlir::MLIRContext &context) {
    mlir::ParserConfig config(&context, /*verifyAfterParse=*/true);
    return mlir::parseSourceString<mlir::ModuleOp>(text, config, "bench.mlir");
  });
}

struct Imported {
  Result<planner::ParsedProgram> parsed;
  Result<planner::ImportedProgram> program;
  explicit operator bool() const { return program.has_value(); }
};

double import(const std::string &text, bool kernelTexts, size_t &numNodes) {
  return seconds([&](mlir::MLIRContext &context) {
    Imported made{planner::parseProgramText(text, "bench.mlir", context),
                  fail(ErrorKind::Invalid, "does not parse")};
    if (!made.parsed)
      return made;
    planner::ImportOptions options;
    options.kernelTexts = kernelTexts;
    made.program = planner::buildDag(*made.parsed->module, options);
    if (made.program)
      numNodes = made.program->dag.nodes.size();
    return made;
  });
}

void programToDag(benchmark::State &state, Shape shape) {
  Generator generator(shape);
  std::string text = generator.generate(state.range(0));
  double ops = double(generator.numOps());
  std::vector<double> parse, whole, withText;
  size_t numNodes = 0;
  for (auto _ : state) {
    parse.push_back(parseAndVerify(text));
    whole.push_back(import(text, false, numNodes));
    withText.push_back(import(text, true, numNodes));
    if (std::min({parse.back(), whole.back(), withText.back()}) < 0)
      return state.SkipWithError("the program was refused");
    state.SetIterationTime(whole.back());
  }
  double parseTime = bench::median(parse), wholeTime = bench::median(whole);
  state.counters["ops"] = ops;
  state.counters["nodes"] = double(numNodes);
  state.counters["parse_ns_per_op"] = parseTime * 1e9 / ops;
  state.counters["ns_per_op"] = wholeTime * 1e9 / ops;
  state.counters["ratio"] = wholeTime / parseTime;
  state.counters["text_ratio"] = bench::median(withText) / parseTime;
}

void registerAll() {
  for (int shape = Chain; shape <= Fresh; ++shape)
    benchmark::RegisterBenchmark(
        (std::string("import/") + shapeNames[shape]).c_str(),
        [shape](benchmark::State &state) { programToDag(state, Shape(shape)); })
        ->Arg(10000)
        ->Arg(30000)
        ->Arg(100000)
        ->Iterations(5)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
}

const bool registered = (registerAll(), true);

} // namespace
