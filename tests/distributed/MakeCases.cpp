// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes every example and random programs, with their results, for RunCases.
// Usage: make-cases FILE
#include "support/FileIO.h"
#include "tests/conformance/ExampleProgram.h"
#include "tests/conformance/RandomProgram.h"
#include "tests/distributed/Case.h"

#include <cstdio>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

constexpr uint64_t numRandom = 50;

Result<Case> makeCase(std::string name, ImportOutcome outcome, uint64_t seed,
                      KernelCache &cache) {
  if (!outcome.dag)
    return fail(outcome.dag.error());
  const planner::Dag &dag = *outcome.dag;
  Case out;
  out.name = std::move(name);
  out.program = planner::toText(
      {dag, outcome.arguments, outcome.results, {}, {}}, out.blobs);
  MGPU_TRY_ASSIGN(out.kernels, cache.compile(dag));
  MGPU_TRY_ASSIGN(out.inputs, randomInputs(dag, seed));
  MGPU_TRY_ASSIGN(const planner::Plan serial, makePlan(dag, "serial"));
  MGPU_TRY_ASSIGN(out.expected,
                  execute(dag, serial, out.kernels, out.inputs, 1, 2));
  for (const std::string &scheduler :
       {std::string("list"), std::to_string(seed)}) {
    MGPU_TRY_ASSIGN(const planner::Plan plan, makePlan(dag, scheduler));
    out.plans.push_back(toText(plan, dag));
  }
  return out;
}

Result<Bytes> makeAll() {
  KernelCache cache;
  Importer importer;
  Bytes all;
  auto add = [&](std::string name, ImportOutcome outcome,
                 uint64_t seed) -> Result<void> {
    auto made = makeCase(name, std::move(outcome), seed, cache);
    if (!made)
      return failIn(name + ": ", made.error());
    put(all, *made);
    return {};
  };
  for (const Example &example : allExamples())
    MGPU_TRY(add(std::string(example.name) + "@" + example.entry,
                 importExample(example), 7));
  for (uint64_t seed = 0; seed < numRandom; ++seed) {
    RandomProgram program = makeRandomProgram(seed);
    if (seed % 2)
      addRandomLoop(program, seed);
    ImportRequest request;
    request.text = printProgram(program);
    request.name = "seed" + std::to_string(seed);
    MGPU_TRY(add(request.name, importer.import(request), seed));
  }
  return all;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  Result<Bytes> all = makeAll();
  Result<void> written;
  if (all) {
    const std::span<const std::byte> bytes = *all;
    written = writeFileAtomic(argv[1], std::span(&bytes, 1));
  }
  for (const Error *error :
       {all ? nullptr : &all.error(), written ? nullptr : &written.error()})
    if (error) {
      std::fprintf(stderr, "%s\n", error->message.c_str());
      return 1;
    }
  return 0;
}
