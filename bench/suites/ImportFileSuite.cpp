// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Measures what turning a program over tensors into a DAG costs, beside parsing
// and verifying its text alone, and how much memory its module takes where it
// names each device (mgpu-opt --spmd-to-mgpu), and once all device work is
// launches.
//
// Usage: bench-import-file FILE...

#include "dialect/conversion/Passes.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "kernels/lower/KernelDialects.h"
#include "planner/import/BuildDag.h"
#include "support/FileIO.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <malloc.h>

namespace {

using namespace mgpu;

double cpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

size_t heapBytes() {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

struct Costs {
  double parse = 0, lower = 0, walk = 0; ///< seconds
  size_t ops = 0, nodes = 0;
  size_t spreadBytes = 0, launchBytes = 0; ///< of the module
};

size_t countOps(mlir::ModuleOp module) {
  size_t count = 0;
  module->walk([&](mlir::Operation *) { ++count; });
  return count;
}

Result<Costs> measure(const std::string &path, const std::string &text) {
  Costs costs;
  mlir::DialectRegistry registry;
  registry.insert<ir::MgpuDialect>();
  kernels::registerHostEmitDialects(registry);
  conversion::registerTensorDialects(registry);
  auto context = [&] {
    auto made = std::make_unique<mlir::MLIRContext>(
        registry, mlir::MLIRContext::Threading::DISABLED);
    made->loadAllAvailableDialects();
    return made;
  };
  {
    auto fresh = context();
    mlir::ParserConfig config(fresh.get(), /*verifyAfterParse=*/true);
    double start = cpuSeconds();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, config, path);
    costs.parse = cpuSeconds() - start;
    if (!module)
      return fail(ErrorKind::Invalid, path + " does not parse");
    costs.ops = countOps(*module);
  }
  {
    auto fresh = context();
    size_t before = heapBytes();
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(text, fresh.get(), path);
    mlir::PassManager passes(fresh.get());
    conversion::SpmdPipelineOptions options;
    options.tosa = false;
    conversion::buildSpmdPipeline(passes, options);
    if (failed(passes.run(*module)))
      return fail(ErrorKind::Invalid, path + " is no program over tensors");
    costs.spreadBytes = heapBytes() - before;
  }
  auto fresh = context();
  size_t before = heapBytes();
  double start = cpuSeconds();
  MGPU_TRY_ASSIGN(auto parsed, planner::parseProgramText(text, path, *fresh));
  costs.lower = cpuSeconds() - start;
  costs.launchBytes = heapBytes() - before;
  planner::ImportOptions options;
  options.kernelTexts = false;
  start = cpuSeconds();
  MGPU_TRY_ASSIGN(auto program, planner::buildDag(*parsed.module, options));
  costs.walk = cpuSeconds() - start;
  costs.nodes = program.dag.nodes.size();
  return costs;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    fmt::print(stderr, "Usage: bench-import-file FILE...\n");
    return 2;
  }
  for (int k = 1; k < argc; ++k) {
    auto file = readFile(argv[k]);
    auto costs =
        file ? measure(argv[k], {reinterpret_cast<const char *>(file->data()),
                                 file->size()})
             : Result<Costs>(fail(file.error()));
    if (!costs) {
      fmt::print(stderr, "{}\n", costs.error().message);
      return 1;
    }
    double whole = costs->lower + costs->walk;
    double nodes = double(costs->nodes);
    fmt::print("{}: {} operations, {} nodes; parse {:.0f} ms, lower {:.0f} ms, "
               "walk {:.0f} ms, ratio {:.2f}; {:.0f} bytes a node, {:.0f} once "
               "all work is launches\n",
               argv[k], costs->ops, costs->nodes, costs->parse * 1e3,
               costs->lower * 1e3, costs->walk * 1e3, whole / costs->parse,
               double(costs->spreadBytes) / nodes,
               double(costs->launchBytes) / nodes);
  }
  return 0;
}
