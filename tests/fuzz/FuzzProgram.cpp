// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any text: readProgram gives a program or an error. A program it accepts
// prints to text that reads back equal, can be planned, and, where it is small
// and has no kernels, runs on the host without leaving its buffers.
#include "capture/replay/Replayer.h"
#include "device/host/HostDriver.h"
#include "planner/cost/TargetMachine.h"
#include "planner/dag/ProgramText.h"
#include "planner/schedule/list/Schedulers.h"

#include <cstdlib>

using namespace mgpu;
using namespace mgpu::planner;

static Result<std::vector<std::byte>> zeros(const std::string &) {
  return std::vector<std::byte>(16);
}

/// Whether a run stays short: kernels are native code and not ours to judge,
/// and a box may name one byte 2^61 times.
static bool isSmall(const Dag &dag) {
  uint64_t total = dag.numDevices > 16 ? UINT64_MAX / 4 : 0;
  for (const Buffer &buffer : dag.buffers)
    total += std::min<uint64_t>(buffer.sizeBytes, 1 << 30);
  auto add = [&](const Box &box) {
    total += std::min<uint64_t>(uint64_t(box.numElements()), 1 << 24) *
             std::min<uint64_t>(box.elementBytes, 1 << 20);
  };
  for (const DagNode &node : dag.nodes) {
    if (auto *copy = std::get_if<CopyCall>(&node.work)) {
      add(copy->sourceBox);
    } else if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
      for (const CollectiveMember &member : call->members)
        add(member.sendBox), add(member.recvBox);
    } else {
      return false;
    }
  }
  return total < 1 << 20 && dag.loop.trips <= 16;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  Result<Program> program = readProgram(text, zeros);
  if (!program)
    return 0;
  Blobs blobs;
  std::string printed = toText(*program, blobs);
  Result<Program> back = readProgram(
      printed, [&](const std::string &hash) { return blobs[hash]; });
  if (!back || !(*back == *program))
    abort();
  const Dag &dag = program->dag;
  const planner::Machine model = planner::hostMachine();
  Result<Plan> plan = schedule(dag, model);
  if (!plan || !verify(*plan, dag))
    abort();
  if (!isSmall(dag))
    return 0;
  auto driver = device::createHostDriver(std::max(dag.numDevices, 1u), 1);
  if (!driver)
    abort();
  auto replayer = capture::Replayer::create(dag, *plan, {}, **driver);
  if (!replayer)
    return 0; // sizes that do not fit together, permute
  if (!replayer->load() || !replayer->replay() || !replayer->fetch())
    abort();
  return 0;
}
