// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs made so that transforms find something: partial sums on several
// devices, reduced by many small all_reduces, read whole or by parts, some
// through copies. Every transform must leave the reference machine's values,
// and the bits of the untransformed program.
#include "tests/conformance/RandomProgram.h"

#include "planner/schedule/Schedulers.h"
#include "support/Random.h"
#include "tests/conformance/Import.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

class Reductions {
public:
  explicit Reductions(uint64_t seed) : random(seed) {}

  RandomProgram make() {
    program.numDevices = 2 + int(random.below(3));
    program.communicators.push_back({});
    for (int d = 0; d < program.numDevices; ++d)
      program.communicators[0].push_back(d);
    int count = 2 + int(random.below(5));
    bool late = random.below(2) == 0; // all sums first, then all reductions
    for (int k = 0; k < count; ++k)
      makeSum();
    if (late)
      for (Sum &sum : sums)
        fill(sum);
    for (Sum &sum : sums) {
      if (!late)
        fill(sum);
      reduce(sum);
      if (random.below(4) == 0)
        use(sum);
    }
    for (Sum &sum : sums)
      if (!sum.isUsed)
        use(sum);
    finish();
    return std::move(program);
  }

private:
  struct Sum {
    std::vector<int> parts, results; ///< by device; equal when in place
    int64_t size = 0;
    bool isUsed = false;
  };

  int root(int device, int64_t size, bool isArgument) {
    Root made;
    made.device = device;
    made.shape = {size};
    made.isArgument = isArgument;
    if (isArgument)
      made.role = "output";
    program.roots.push_back(made);
    return int(program.roots.size()) - 1;
  }
  int allocated(int device, int64_t size) {
    int id = root(device, size, false);
    Op op{Op::Alloc};
    op.roots = {id};
    program.ops.push_back(op);
    return id;
  }
  View view(int id, int64_t offset = 0, int64_t size = -1) {
    View made;
    made.root = id;
    made.offsets = {offset};
    made.isWholeRoot = size < 0;
    made.sizes = {size < 0 ? program.roots[id].shape[0] : size};
    made.steps = {1};
    return made;
  }
  void makeSum() {
    Sum sum;
    // Whole numbers of 256 bytes and others, to be padded.
    sum.size = program.numDevices * 2 * int64_t(1 + random.below(40));
    bool inPlace = random.below(2) == 0;
    for (int d = 0; d < program.numDevices; ++d) {
      sum.parts.push_back(allocated(d, sum.size));
      sum.results.push_back(inPlace ? sum.parts.back()
                                    : allocated(d, sum.size));
    }
    sums.push_back(std::move(sum));
  }
  void overwrite(int id) {
    Op op{Op::Launch};
    op.kernel = KernelTemplate::Fill;
    op.to = {view(id)};
    op.scalar = int64_t(random.below(4));
    program.ops.push_back(op);
  }
  void fill(const Sum &sum) {
    for (int d = 0; d < program.numDevices; ++d)
      overwrite(sum.parts[d]);
  }
  void reduce(const Sum &sum) {
    Op op{Op::Collective};
    for (int d = 0; d < program.numDevices; ++d) {
      op.to.push_back(view(sum.results[d]));
      op.from.push_back(view(sum.parts[d]));
      op.callOrder.push_back(d);
    }
    program.ops.push_back(op);
  }
  void copy(View to, View from) {
    Op op{Op::Copy};
    op.to = {std::move(to)};
    op.from = {std::move(from)};
    program.ops.push_back(op);
  }
  void use(Sum &sum) {
    sum.isUsed = true;
    int out = root(-1, sum.size, true);
    int64_t share = sum.size / program.numDevices;
    switch (random.below(3)) {
    case 0: // each device hands out its part
      for (int d = 0; d < program.numDevices; ++d)
        copy(view(out, d * share, share),
             view(sum.results[d], d * share, share));
      return;
    case 1: // one hands out all, through a copy and a kernel
    {
      int d = int(random.below(uint64_t(program.numDevices)));
      int held = allocated(d, sum.size), made = allocated(d, sum.size);
      copy(view(held), view(sum.results[d]));
      uint64_t how = random.below(4);
      if (how == 1) // a new value must not reach the copy
        overwrite(sum.results[d]);
      if (how == 2) // or must
        overwrite(sum.results[d]), copy(view(held), view(sum.results[d]));
      if (how == 3)
        copy(view(held), view(sum.results[d]));
      Op op{Op::Launch};
      op.kernel = KernelTemplate::Reverse;
      op.to = {view(made)};
      op.from = {view(held)};
      program.ops.push_back(op);
      copy(view(out), view(made));
      return;
    }
    default: // one hands out another's part as well
      copy(view(out, 0, 2 * share), view(sum.results[0], 0, 2 * share));
      return;
    }
  }
  void finish() {
    for (const Root &made : program.roots)
      program.initial.emplace_back(size_t(made.shape[0]), 0.0);
    Machine machine(program);
    machine.memory = program.initial;
    for (const Op &op : program.ops)
      EXPECT_TRUE(machine.run(op));
    program.final = machine.memory;
  }

  Random random;
  RandomProgram program;
  std::vector<Sum> sums;
};

TEST(TransformPrograms, KeepValuesAndBits) {
  Importer importer;
  KernelCache cache;
  std::map<std::string, uint32_t> changes;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    RandomProgram program = Reductions(seed).make();
    ImportRequest request;
    request.text = printProgram(program);
    request.name = "seed" + std::to_string(seed);
    SCOPED_TRACE(request.text);
    ImportOutcome outcome = importer.import(request);
    ASSERT_TRUE(outcome.dag)
        << (outcome.errors.empty() ? outcome.dag.error().message
                                   : outcome.errors[0]);
    auto objects = cache.compile(*outcome.dag);
    ASSERT_TRUE(objects) << objects.error().message;
    auto serial = makePlan(*outcome.dag, "serial");
    ASSERT_TRUE(serial) << serial.error().message;
    auto expected = execute(*outcome.dag, *serial, *objects, {}, 1);
    ASSERT_TRUE(expected) << expected.error().message;
    for (size_t id = 0; id < program.roots.size(); ++id)
      if (program.roots[id].isArgument) {
        const auto &bytes = expected->at(argumentName(int(id)));
        for (size_t k = 0; k < program.final[id].size(); ++k)
          ASSERT_EQ(reinterpret_cast<const float *>(bytes.data())[k],
                    program.final[id][k]);
      }
    auto all = transformed(*outcome.dag);
    ASSERT_TRUE(all) << all.error().message;
    for (const Transformed &each : *all) {
      changes[each.name] += each.changes;
      for (std::string scheduler : {"serial", "list", "1", "2", "3"}) {
        auto plan = makePlan(each.dag, scheduler);
        ASSERT_TRUE(plan) << each.name << ": " << plan.error().message;
        auto got = execute(each.dag, *plan, *objects, {}, 2, 2);
        ASSERT_TRUE(got) << each.name << ": " << got.error().message;
        ASSERT_EQ(difference(*expected, *got), "")
            << each.name << ", scheduler " << scheduler;
      }
    }
  }
  for (const auto &[name, count] : changes) {
    printf("transform %s: %u changes\n", name.c_str(), count);
    if (name != "all twice") {
      EXPECT_GT(count, 8u) << name;
    }
  }
}

} // namespace
