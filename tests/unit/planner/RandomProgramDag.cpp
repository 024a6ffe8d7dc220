// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/unit/planner/RandomProgramDag.h"

#include "tests/unit/planner/RandomDag.h"

namespace mgpu::planner::testing {

static BufferId addHostBuffer(Dag &dag, std::string name, BufferRole role,
                              uint32_t index, uint64_t elements) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.role = role;
  buffer.index = index;
  buffer.elementType = ElementType::F32;
  buffer.sizeBytes = 4 * elements;
  buffer.shape = {1, int64_t(elements)};
  dag.buffers.push_back(std::move(buffer));
  return {uint32_t(dag.buffers.size() - 1)};
}

namespace {

/// Counters of which one is divided by 8.
struct TiedCounters : AffineCounters {
  TiedCounters(Dim3 grid, Dim3 block, uint32_t divided)
      : AffineCounters(grid, block) {
    const uint32_t quotient = addCounter(9), remainder = addCounter(8);
    ties[quotient] =
        ties[remainder] = {3, {{divided, 1}, {quotient, -8}, {remainder, -1}}};
  }
};

} // namespace

KernelFacts randomFacts(std::mt19937_64 &random, const std::string &kernel) {
  auto pick = [&](uint64_t bound) { return random() % bound; };
  using Step = KernelFacts::Step;
  KernelFacts facts;
  facts.kernel = kernel;
  facts.grid = {uint32_t(2 + pick(1000)), 1, uint32_t(1 + pick(3))};
  facts.block = {64, 2, uint32_t(1 + pick(4))};
  facts.counters = TiedCounters(facts.grid, facts.block, uint32_t(pick(2)));
  if (pick(2))
    facts.product = {
        double(1 + pick(99)), 2.5,  3,           4, ElementType::BF16,
        ElementType::F32,     true, pick(2) == 0};
  facts.places = {{}, {double(pick(100)) / 7, UINT64_MAX}, {2.5, pick(9)}};
  facts.buffers = {{pick(2) == 0, 2}, {true, 0}};
  for (uint64_t k = pick(9); k > 0; --k) {
    Step step;
    step.kind = Step::Kind(pick(6));
    step.place = uint32_t(pick(3));
    step.instructions = double(pick(100)) / 3;
    step.isAddress = pick(2);
    step.isCommon = pick(2);
    step.buffer = uint32_t(pick(2));
    step.width = 1u << pick(5);
    step.bytes = step.width << pick(3);
    if (pick(2))
      step.address = {
          int64_t(pick(1000)) - 500,
          {{0, 1}, {uint32_t(6 + pick(2)), int64_t(pick(99)) - 50}}};
    facts.steps.push_back(std::move(step));
  }
  return facts;
}

Program randomProgram(uint64_t seed) {
  std::mt19937_64 random(seed * 2 + 1);
  auto pick = [&](uint64_t bound) { return random() % bound; };
  Program program;
  program.dag = randomDag(seed);
  Dag &dag = program.dag;
  dag.name = "odd \"name\"\t\\ " + std::to_string(seed);
  dag.residentBytes = pick(1000);
  for (uint32_t k = 0; k < 1 + pick(3); ++k) {
    KernelSpec kernel;
    kernel.name = "k \n" + std::to_string(k);
    kernel.hash = "h" + std::to_string(pick(5));
    const std::string text = "module {}\n\"quoted\" " + std::to_string(pick(3));
    if (pick(2)) {
      kernel.source = MlirKernel{text};
    } else if (pick(2)) {
      CudaFile file{
          .text = "\xff // " + text,
          .file = "k\n.cu",
          .entry = "k",
          .parameters = {{ElementType::F16, true}, {ElementType::I1, false}},
          .tunables = {{"TILE", {16, 8}}, {"DEPTH", {4}}},
          .dynamicSharedBytes = 16,
          .reference = text};
      if (pick(2))
        file.rules = {"TILE % DEPTH == 0"};
      if (pick(2)) { // of a builder
        file.host = "void k() {} // " + text;
        file.hostEntry = "k \"k\"";
      }
      if (pick(2))
        file.cubins = {{"sm_80", std::string("\0\xff", 2)}, {"sm_90", text}};
      kernel.source = file;
    }
    if (pick(2))
      kernel.facts = randomFacts(random, kernel.hash);
    kernel.location = k == 0 ? "" : "a file.mlir:3:4";
    kernel.block = {uint32_t(1 + pick(9)), 2, 3};
    kernel.numArguments = uint32_t(pick(4));
    dag.kernels.push_back(kernel);
  }
  for (DagNode &node : dag.nodes) {
    node.location = pick(2) ? "f.mlir:1:2" : "";
    node.flops = double(pick(1000)) / 7;
    node.bytesRead = random();
    node.bytesWritten = pick(1 << 20);
    node.outBytes = pick(9);
    node.isMatmul = pick(2);
    auto *opaque = std::get_if<OpaqueCall>(&node.work);
    if (opaque && pick(3)) {
      KernelCall call;
      call.kernel.value = uint32_t(pick(dag.kernels.size()));
      call.grid = {uint32_t(random()), 1, uint32_t(pick(5))};
      if (pick(3) == 0)
        call.part = GridPart{{call.grid.x / 2, 0, 0}, {call.grid.x / 3, 1, 0}};
      for (uint32_t k = dag.kernels[call.kernel.value].numArguments; k > 0; --k)
        if (pick(2))
          call.arguments.push_back({random() >> pick(64), 0});
        else
          call.arguments.push_back(
              {BufferId{uint32_t(pick(dag.buffers.size()))},
               int64_t(pick(64))});
      node.work = std::move(call);
    } else if (opaque) {
      opaque->bytes = random();
      opaque->group = uint32_t(pick(9));
      opaque->isSlice = pick(2);
      opaque->splittable = pick(3);
    }
  }
  uint32_t numArguments = uint32_t(pick(4));
  for (uint32_t k = 0; k < numArguments; ++k) {
    ProgramArgument argument;
    argument.name = "arg " + std::to_string(k);
    argument.role = ArgumentRole(pick(6));
    if (argument.role == ArgumentRole::Specialised) {
      argument.elementType = ElementType(pick(12));
      argument.value = "0x\"1";
    } else {
      uint64_t elements = pick(5);
      argument.shape = {1, int64_t(elements)};
      argument.buffer =
          addHostBuffer(dag, argument.name, BufferRole::Argument, k, elements);
    }
    program.arguments.push_back(std::move(argument));
  }
  BufferId result = addHostBuffer(dag, "r", BufferRole::Result, 0, 3);
  program.results.push_back(
      {"r0", ArgumentRole::Output, ElementType::F32, {3}, result, ""});
  dag.loop.trips = 1 + pick(4);
  dag.loop.location = pick(2) ? "f.mlir:2:2" : "";
  for (uint64_t k = pick(3); k > 0; --k) {
    dag.loop.inductions.push_back(
        {addHostBuffer(dag, "i" + std::to_string(k), BufferRole::HostLocal, 0,
                       1 + pick(2)),
         int64_t(random()), int64_t(pick(9)) - 4});
  }
  BufferId constant = addHostBuffer(dag, "c", BufferRole::Constant, 0, pick(6));
  Buffer &bytes = dag.buffers[constant.value];
  for (uint64_t k = 0; k < bytes.sizeBytes; ++k)
    bytes.contents.push_back(std::byte(random()));
  return program;
}

BlobReader readerOf(const Blobs &blobs) {
  return [&blobs](const std::string &hash) -> Result<std::vector<std::byte>> {
    auto at = blobs.find(hash);
    if (at == blobs.end())
      return fail(ErrorKind::Invalid, "there is nothing of hash " + hash);
    return at->second;
  };
}

} // namespace mgpu::planner::testing
