// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/RandomProgram.h"

#include "support/Random.h"

#include <algorithm>

namespace mgpu::conformance {

namespace {

/// Runs the program from its initial values; false if a value leaves the exact
/// range of its type.
bool rerun(RandomProgram &program) {
  Machine machine(program);
  machine.memory = program.initial;
  const RandomProgram::Loop &loop = *program.loop;
  auto runAll = [&](size_t begin, size_t end, int trip) {
    for (size_t k = begin; k < end; ++k) {
      Op op = program.ops[k];
      op.scalar += op.addsTrip ? trip : 0;
      if (!machine.run(op))
        return false;
    }
    return true;
  };
  if (!runAll(0, loop.begin, 0))
    return false;
  for (int trip = 0; trip < loop.trips; ++trip)
    if (!runAll(loop.begin, loop.end, trip))
      return false;
  if (!runAll(loop.end, program.ops.size(), 0))
    return false;
  program.final = machine.memory;
  return true;
}

/// No streams and no waits: every command is the host's to wait for.
void dropStreams(RandomProgram &program) {
  std::erase_if(program.ops, [](const Op &op) {
    return op.kind == Op::StreamWait || op.kind == Op::SyncStream;
  });
  for (Op &op : program.ops)
    std::fill(op.streams.begin(), op.streams.end(), -1);
  for (Op &op : program.ops)
    if (op.kind == Op::Scatter || op.kind == Op::Gather ||
        op.kind == Op::Replicate)
      op.streams.clear();
}

} // namespace

bool addRandomLoop(RandomProgram &program, uint64_t seed) {
  Random random(seed);
  if (random.below(4) > 0)
    dropStreams(program);
  // Buffers of the loop's ops are made before it.
  std::vector<Op> ordered;
  for (bool allocs : {true, false})
    for (const Op &op : program.ops)
      if ((op.kind == Op::Alloc) == allocs)
        ordered.push_back(op);
  program.ops = std::move(ordered);
  size_t first =
      size_t(std::count_if(program.ops.begin(), program.ops.end(),
                           [](const Op &op) { return op.kind == Op::Alloc; }));
  if (first == program.ops.size())
    return false;
  RandomProgram::Loop loop;
  loop.begin = first + random.below(program.ops.size() - first);
  loop.end = loop.begin + 1 + random.below(program.ops.size() - loop.begin);
  for (size_t k = loop.begin; k < loop.end; ++k)
    if (program.ops[k].kind == Op::Free)
      loop.end = k;
  if (loop.begin == loop.end)
    return false;
  loop.trips = int(2 + random.below(4));
  program.loop = loop;
  for (size_t k = loop.begin; k < loop.end; ++k)
    program.ops[k].addsTrip =
        program.ops[k].kind == Op::Launch && random.below(2) == 0;
  return rerun(program);
}

} // namespace mgpu::conformance
