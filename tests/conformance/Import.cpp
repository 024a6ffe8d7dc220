// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/Import.h"

#include "dialect/conversion/Passes.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "kernels/host/HostEmitter.h"
#include "kernels/lower/KernelDialects.h"
#include "planner/import/BuildDag.h"
#include "support/Random.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <memory>

namespace mgpu::conformance {

using namespace mlir;

static DialectRegistry programDialects() {
  DialectRegistry registry;
  registry.insert<ir::MgpuDialect>();
  kernels::registerHostEmitDialects(registry);
  conversion::registerTensorDialects(registry);
  return registry;
}

struct Importer::State {
  MLIRContext context{programDialects(), MLIRContext::Threading::DISABLED};
};

Importer::Importer() : state(std::make_unique<State>()) {
  state->context.printOpOnDiagnostic(false);
}
Importer::~Importer() = default;

/// Any way of resharding may be the cheapest.
static conversion::ExchangeCost randomCost(uint64_t seed) {
  if (seed == 0)
    return nullptr;
  auto random = std::make_shared<Random>(seed);
  return [random](const conversion::Exchange &) {
    return double(random->below(100));
  };
}

ImportOutcome Importer::import(const ImportRequest &request) {
  ImportOutcome outcome{
      fail(ErrorKind::Invalid, "it does not parse"), {}, {}, 0, {}};
  ScopedDiagnosticHandler collect(&state->context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      outcome.errors.push_back(ir::describeLocation(diagnostic.getLocation()) +
                               ": " + diagnostic.str());
  });
  auto parsed = planner::parseProgramText(
      request.text, request.name, state->context,
      {.entry = request.entry,
       .fuse = request.fuse,
       .products = request.fuseNarrowProducts ? planner::FuseProducts::All
                                              : planner::FuseProducts::Wide,
       .scalars = request.scalars,
       .exchangeCost = randomCost(request.costSeed)});
  if (!parsed) {
    outcome.dag = fail(std::move(parsed.error()));
    return outcome;
  }
  planner::ImportOptions options;
  options.entry = request.entry;
  options.scalars = request.scalars;
  options.racesAreErrors = request.racesAreErrors;
  options.nodeLimit = request.nodeLimit;
  options.rollFrom = request.rollFrom;
  auto imported = planner::buildDag(*parsed->module, options);
  if (!imported) {
    outcome.dag = fail(std::move(imported.error()));
    return outcome;
  }
  outcome.dag = std::move(imported->dag);
  outcome.arguments = std::move(imported->arguments);
  outcome.results = std::move(imported->results);
  outcome.numRaces = imported->numRaces;
  return outcome;
}

// Making a context anew takes as long as compiling a small kernel.
struct KernelCache::State {
  MLIRContext context{programDialects(), MLIRContext::Threading::DISABLED};
};

KernelCache::KernelCache() : state(std::make_unique<State>()) {}
KernelCache::~KernelCache() = default;
KernelCache::KernelCache(KernelCache &&) noexcept = default;

Result<std::vector<std::vector<std::byte>>>
KernelCache::compile(const planner::Dag &dag) {
  std::vector<std::vector<std::byte>> compiled;
  for (const planner::KernelSpec &spec : dag.kernels) {
    auto known = objects.find(spec.hash);
    if (known == objects.end()) {
      MGPU_TRY_ASSIGN(const std::string *text, spec.hostText());
      OwningOpRef<ModuleOp> module =
          parseSourceString<ModuleOp>(*text, ParserConfig(&state->context));
      if (!module)
        return fail(ErrorKind::Internal,
                    "kernel " + spec.name + " does not parse:\n" + *text);
      MGPU_TRY_ASSIGN(auto object,
                      kernels::emitHostKernel(*module, spec.block));
      known = objects.emplace(spec.hash, std::move(object)).first;
    }
    compiled.push_back(known->second);
  }
  return compiled;
}

} // namespace mgpu::conformance
