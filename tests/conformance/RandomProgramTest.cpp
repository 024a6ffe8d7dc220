// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random programs under serial, list and shuffled plans against the reference
// machine. MGPU_CONFORMANCE_SEED=N runs the program of that seed alone;
// MGPU_CONFORMANCE_COUNT=N runs as many as that.
#include "tests/conformance/CollectivePrograms.h"

#include "planner/plan/Verify.h"
#include "support/Array.h"
#include "tests/conformance/Import.h"
#include "tests/unit/Sweep.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

std::vector<std::byte> encode(const Root &root,
                              const std::vector<double> &values) {
  uint32_t size = sizeBytes(root.type);
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t k = 0; k < values.size(); ++k)
    EXPECT_TRUE(storeNumber(values[k], root.type, &bytes[k * size]));
  return bytes;
}

/// By value: the sign of a zero may depend on how a minimum is found.
std::string compare(const RandomProgram &program, const HostData &got) {
  for (size_t id = 0; id < program.roots.size(); ++id) {
    const Root &root = program.roots[id];
    if (!root.isArgument)
      continue;
    auto at = got.find(argumentName(int(id)));
    if (at == got.end())
      return argumentName(int(id)) + " is missing";
    Array array{root.type, root.shape, at->second};
    for (size_t k = 0; k < program.final[id].size(); ++k)
      if (double value = loadNumber(array, int64_t(k));
          value != program.final[id][k])
        return argumentName(int(id)) + "[" + std::to_string(k) + "] is " +
               std::to_string(value) + ", expected " +
               std::to_string(program.final[id][k]);
  }
  return "";
}

uint64_t fromEnvironment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Counts {
  size_t nodes = 0, rolled = 0;
  std::map<std::string, uint32_t> changes; ///< by transform
};

void check(Importer &importer, KernelCache &cache, const RandomProgram &program,
           uint64_t seed, Counts &counts) {
  ImportRequest request;
  request.text = printProgram(program);
  request.name = "seed" + std::to_string(seed);
  SCOPED_TRACE("MGPU_CONFORMANCE_SEED=" + std::to_string(seed) + "\n" +
               request.text);
  ImportOutcome outcome = importer.import(request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message
                           << (outcome.errors.empty() ? "" : outcome.errors[0]);
  const planner::Dag &dag = *outcome.dag;
  counts.nodes += dag.nodes.size();
  counts.rolled += dag.loop.trips > 1;
  ASSERT_EQ(textFault({dag, outcome.arguments, outcome.results, {}, {}}), "");
  auto objects = cache.compile(dag);
  ASSERT_TRUE(objects) << objects.error().message;
  HostData inputs;
  for (size_t id = 0; id < program.roots.size(); ++id)
    if (program.roots[id].isArgument)
      inputs[argumentName(int(id))] =
          encode(program.roots[id], program.initial[id]);
  HostData first;
  for (std::string scheduler : {"serial", "list", "1", "2", "3", "4"}) {
    auto plan = makePlan(dag, scheduler);
    ASSERT_TRUE(plan) << scheduler << ": " << plan.error().message;
    uint32_t threads = scheduler == "serial" ? 1 : 2;
    auto got = execute(dag, *plan, *objects, inputs, threads);
    ASSERT_TRUE(got) << scheduler << ": " << got.error().message;
    ASSERT_EQ(compare(program, *got), "") << "scheduler " << scheduler;
    if (first.empty())
      first = std::move(*got);
    else
      ASSERT_EQ(difference(first, *got), "") << "scheduler " << scheduler;
  }
  auto all = transformed(dag);
  ASSERT_TRUE(all) << all.error().message;
  for (const Transformed &each : *all) {
    counts.changes[each.name] += each.changes;
    if (each.changes == 0)
      continue;
    for (std::string scheduler : {"list", "1", "2"}) {
      auto plan = makePlan(each.dag, scheduler);
      ASSERT_TRUE(plan) << each.name << ": " << plan.error().message;
      auto got = execute(each.dag, *plan, *objects, inputs, 2);
      ASSERT_TRUE(got) << each.name << ": " << got.error().message;
      ASSERT_EQ(difference(first, *got), "")
          << each.name << ", scheduler " << scheduler;
    }
  }
}

TEST(RandomPrograms, AgreeWithTheReferenceMachine) {
  Importer importer;
  KernelCache cache;
  uint64_t start = fromEnvironment("MGPU_CONFORMANCE_SEED", 0);
  bool isOne = std::getenv("MGPU_CONFORMANCE_SEED") != nullptr;
  uint64_t count =
      fromEnvironment("MGPU_CONFORMANCE_COUNT", isOne ? 1 : sweep(50, 150));
  Counts counts;
  for (uint64_t seed = start; seed < start + count; ++seed) {
    check(importer, cache, makeRandomProgram(seed), seed, counts);
    if (HasFailure())
      break; // one text is enough to read
  }
  printf("%zu nodes, %zu kernels\n", counts.nodes, cache.size());
  for (const auto &[name, count] : counts.changes)
    printf("transform %s: %u changes\n", name.c_str(), count);
}

TEST(CollectivePrograms, EveryFormAgreesWithItsDefinition) {
  Importer importer;
  KernelCache cache;
  Counts counts;
  for (ElementType type :
       {ElementType::I1, ElementType::I8, ElementType::I16, ElementType::I32,
        ElementType::I64, ElementType::Index, ElementType::F8E4M3FN,
        ElementType::F8E5M2, ElementType::F16, ElementType::BF16,
        ElementType::F32, ElementType::F64}) {
    SCOPED_TRACE(toString(type));
    check(importer, cache, makeCollectiveProgram(type), 0, counts);
    if (HasFailure())
      break;
  }
  EXPECT_EQ(cache.size(), 0u);
}

TEST(RandomPrograms, RolledLoopsAgreeWithTheReferenceMachine) {
  Importer importer;
  KernelCache cache;
  uint64_t start = fromEnvironment("MGPU_CONFORMANCE_SEED", 0);
  bool isOne = std::getenv("MGPU_CONFORMANCE_SEED") != nullptr;
  uint64_t count =
      fromEnvironment("MGPU_CONFORMANCE_COUNT", isOne ? 1 : sweep(50, 150));
  size_t used = 0;
  Counts counts;
  for (uint64_t seed = start; seed < start + count; ++seed) {
    RandomProgram program = makeRandomProgram(seed);
    if (!addRandomLoop(program, seed))
      continue;
    ++used;
    check(importer, cache, program, seed, counts);
    if (HasFailure())
      break;
  }
  printf("%zu programs, %zu rolled, %zu nodes, %zu kernels\n", used,
         counts.rolled, counts.nodes, cache.size());
  // The rest race, as random streams do, and are unrolled.
  if (!isOne) {
    EXPECT_GT(counts.rolled, used / 3);
  }
}

} // namespace
