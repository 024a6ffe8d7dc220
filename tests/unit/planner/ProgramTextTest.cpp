// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/unit/planner/RandomProgramDag.h"

#include "planner/schedule/list/Schedulers.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

TEST(ProgramText, ReadsBackEqual) {
  size_t kernels = 0, copies = 0, collectives = 0, opaque = 0, constants = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Program program = randomProgram(seed);
    Blobs blobs;
    std::string text = toText(program, blobs);
    Result<Program> back = readProgram(text, readerOf(blobs));
    ASSERT_TRUE(back) << back.error().message << "\n" << text;
    ASSERT_TRUE(*back == program) << text;
    Blobs again;
    EXPECT_EQ(toText(*back, again), text);
    EXPECT_EQ(again, blobs);
    for (const DagNode &node : program.dag.nodes) {
      kernels += std::holds_alternative<KernelCall>(node.work);
      copies += std::holds_alternative<CopyCall>(node.work);
      collectives += std::holds_alternative<CollectiveCall>(node.work);
      opaque += std::holds_alternative<OpaqueCall>(node.work);
    }
    for (const Buffer &buffer : program.dag.buffers)
      constants += !buffer.contents.empty();
  }
  for (size_t seen : {kernels, copies, collectives, opaque, constants})
    EXPECT_GT(seen, 100u);
}

// Not a field may be left out: each is changed in turn, and the text with it.
TEST(ProgramText, SaysWhatALaunchAsksFor) {
  Blobs blobs;
  Program program = randomProgram(1);
  for (DagNode &node : program.dag.nodes)
    node.asks = LaunchWork{1e9, 0.5, 3 * 32, 16};
  const std::string text = toText(program, blobs);
  EXPECT_NE(text.find(" asks "), std::string::npos) << text;
  Result<Program> back = readProgram(text, readerOf(blobs));
  ASSERT_TRUE(back) << back.error().message << "\n" << text;
  EXPECT_TRUE(*back == program) << text;
  program.dag.nodes[0].asks->blocks = 64;
  const std::string withBlocks = toText(program, blobs);
  back = readProgram(withBlocks, readerOf(blobs));
  ASSERT_TRUE(back) << back.error().message << "\n" << withBlocks;
  EXPECT_TRUE(*back == program) << withBlocks;
}

static KernelFacts otherFacts(const std::string &kernel) {
  std::mt19937_64 random(99);
  return randomFacts(random, kernel);
}

TEST(ProgramText, SaysEverything) {
  Program base = randomProgram(3);
  DagNode *call = nullptr, *copy = nullptr, *collective = nullptr;
  auto find = [&](Program &program) {
    call = copy = collective = nullptr;
    for (DagNode &node : program.dag.nodes) {
      if (auto *work = std::get_if<KernelCall>(&node.work);
          work && !work->arguments.empty())
        call = &node;
      if (std::holds_alternative<CopyCall>(node.work))
        copy = &node;
      if (std::holds_alternative<CollectiveCall>(node.work))
        collective = &node;
    }
    return call && copy && collective && !program.dag.edges.empty() &&
           !program.arguments.empty() && !program.dag.loop.inductions.empty();
  };
  uint64_t seed = 3;
  while (!find(base))
    base = randomProgram(++seed);
  Blobs none;
  const std::string before = toText(base, none);
  using Change = void (*)(Program &, DagNode &, DagNode &, DagNode &);
#define CHANGE(statement)                                                      \
  [](Program &p, DagNode &k, DagNode &c, DagNode &g) {                         \
    (void)p, (void)k, (void)c, (void)g;                                        \
    statement;                                                                 \
  }
  const Change changes[] = {
      CHANGE(p.dag.name += 'x'),
      CHANGE(p.dag.numDevices += 1),
      CHANGE(p.dag.spmd = true),
      CHANGE(p.dag.residentBytes += 1),
      CHANGE(p.dag.buffers[0].name += 'x'),
      CHANGE(p.dag.buffers[0].device.value += 1),
      CHANGE(p.dag.buffers[0].role = BufferRole::HostLocal),
      CHANGE(p.dag.buffers[0].index += 1),
      CHANGE(p.dag.buffers[0].sizeBytes += 1),
      CHANGE(p.dag.buffers[0].elementType = ElementType::F64),
      CHANGE(p.dag.buffers[0].shape.push_back(1)),
      CHANGE(p.dag.buffers.back().contents.push_back(std::byte(1))),
      CHANGE(p.dag.kernels[0].name += 'x'),
      CHANGE((p.dag.kernels[0].facts = SharedFacts(),
              p.dag.kernels[0].hash += 'x')),
      CHANGE(p.dag.kernels[0].source = MlirKernel{"another"}),
      CHANGE(p.dag.kernels[0].facts = otherFacts(p.dag.kernels[0].hash)),
      CHANGE(p.dag.kernels[0].location += 'x'),
      CHANGE(p.dag.kernels[0].block.z += 1),
      CHANGE(p.dag.kernels[0].numArguments += 1),
      CHANGE(p.dag.loop.trips += 1),
      CHANGE(p.dag.loop.location += 'x'),
      CHANGE(p.dag.loop.inductions[0].buffer.value += 1),
      CHANGE(p.dag.loop.inductions[0].first += 1),
      CHANGE(p.dag.loop.inductions[0].step += 1),
      CHANGE(p.arguments[0].name += 'x'),
      CHANGE(p.arguments[0].role =
                 ArgumentRole((int(p.arguments[0].role) + 1) % 6)),
      CHANGE(p.arguments[0].elementType =
                 ElementType((int(p.arguments[0].elementType) + 1) % 12)),
      CHANGE(p.arguments[0].shape.push_back(1)),
      CHANGE(p.results[0].buffer->value += 1),
      CHANGE(p.results.pop_back()),
      CHANGE(k.name += 'x'),
      CHANGE(k.location += 'x'),
      CHANGE(k.phase = Phase((int(k.phase) + 1) % 5)),
      CHANGE(k.devices[0].value += 1),
      CHANGE(k.uses[0].buffer.value += 1),
      CHANGE(k.uses[0].box.offset += 1),
      CHANGE(k.uses[0].reads = !k.uses[0].reads),
      CHANGE(k.uses[0].writes = !k.uses[0].writes),
      CHANGE(k.flops += 1),
      CHANGE(k.bytesRead += 1),
      CHANGE(k.bytesWritten += 1),
      CHANGE(k.outBytes += 1),
      CHANGE((k.asks = LaunchWork{1, 2, 3, 4})),
      CHANGE((k.asks = LaunchWork{1, 2, 3, 5})),
      CHANGE((k.asks = LaunchWork{1, 2, 3, 5, 6})),
      CHANGE(k.durationUs = k.durationUs.value_or(0) + 0.1),
      CHANGE(std::get<KernelCall>(k.work).kernel.value += 1),
      CHANGE(std::get<KernelCall>(k.work).grid.y += 1),
      CHANGE(std::get<KernelCall>(k.work).part.emplace()),
      CHANGE(k.uses[0].blockSteps[2] += 1),
      CHANGE(std::get<KernelCall>(k.work).arguments[0].offsetBytes += 1),
      CHANGE(std::get<KernelCall>(k.work).arguments[0].value = uint64_t(77)),
      CHANGE(std::get<CopyCall>(c.work).source.value += 1),
      CHANGE(std::get<CopyCall>(c.work).destination.value += 1),
      CHANGE(std::get<CopyCall>(c.work).sourceBox.strides[0] -= 9),
      CHANGE(std::get<CopyCall>(c.work).destinationBox.sizes[0] += 1),
      CHANGE(std::get<CopyCall>(c.work).destinationBox.elementBytes += 1),
      CHANGE(std::get<CollectiveCall>(g.work).kind = CollectiveKind::Permute),
      CHANGE(std::get<CollectiveCall>(g.work).reduction = ReductionKind::Max),
      CHANGE(std::get<CollectiveCall>(g.work).elementType = ElementType::I1),
      CHANGE(std::get<CollectiveCall>(g.work).root += 1),
      CHANGE(std::get<CollectiveCall>(g.work).communicator += 1),
      CHANGE(std::get<CollectiveCall>(g.work).pairs.push_back({0, 1})),
      CHANGE(std::get<CollectiveCall>(g.work).members[0].device.value += 1),
      CHANGE(std::get<CollectiveCall>(g.work).members[0].send.value += 1),
      CHANGE(std::get<CollectiveCall>(g.work).members[0].recv.value += 1),
      CHANGE(std::get<CollectiveCall>(g.work).members[1].sendBox.offset += 1),
      CHANGE(std::get<CollectiveCall>(g.work).members[1].recvBox.offset += 1),
      CHANGE(p.dag.edges[0].kind = DepKind((int(p.dag.edges[0].kind) + 1) % 4)),
      CHANGE(p.dag.edges.pop_back()),
  };
#undef CHANGE
  for (size_t n = 0; n < std::size(changes); ++n) {
    Program changed = base;
    ASSERT_TRUE(find(changed));
    changes[n](changed, *call, *copy, *collective);
    ASSERT_FALSE(changed == base) << "change " << n;
    Blobs blobs;
    EXPECT_NE(toText(changed, blobs), before) << "change " << n;
  }
}

namespace {
/// One argument copied to a device, and back to a result.
class ProgramTextErrors : public ::testing::Test {
protected:
  std::string text = R"(mgpu-program 8
program "main" devices 2 spmd 0 resident 0
buffer "x" on host argument 0 bytes 64 type f32 shape 4 4
buffer "t" on 1 temporary 0 bytes 64 type f32 shape 16
argument "x" inout type f32 shape 4 4 buffer 0
argument "n" specialised type index shape value "3"
node "in" replay on 1 at "p.mlir:1:2" cost 0 64 64 0
copy 0 0+16*4:4 1 0+16*4:4
use 0 r 0+16*4:4
use 1 w 0+64*1:1
node "out" replay on 1 at "" cost 0 64 64 0 for 1.5
copy 1 0+4*16+4*4:4 0 0+16*4:4
use 1 r 0+16*4:4
use 0 w 0+16*4:4
after d0
end
)";
  /// The message for the text with the first `from` replaced by `to`.
  std::string message(const std::string &from, const std::string &to) {
    std::string changed = text;
    size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    Result<Program> program = readProgram(changed, readerOf(blobs));
    return program ? "accepted" : program.error().message;
  }
  Blobs blobs;
};
} // namespace

TEST_F(ProgramTextErrors, NameTheFault) {
  EXPECT_EQ(message("end\n", "# a comment\n\n end \r\n"), "accepted");
  EXPECT_EQ(message("mgpu-program 8", "mgpu-program 3"),
            "program line 1: the program has version 3, of an earlier mgpu; "
            "this one reads version 8: make it anew by `mgpu-tune bundle "
            "PROGRAM -o FILE`");
  EXPECT_EQ(message("devices 2", "devices 4000000000"),
            "program line 2: 4000000000 devices are more than 65536");
  EXPECT_EQ(message("on 1 temporary", "on 2 temporary"),
            "program: buffer \"t\" lies on device 2, but the DAG has 2 "
            "devices");
  EXPECT_EQ(message("on 1 temporary", "on -1 temporary"),
            "program line 4: \"-1\" is not a valid device");
  EXPECT_EQ(message("temporary", "eternal"),
            "program line 4: \"eternal\" is not a valid role of a buffer");
  EXPECT_EQ(message("type f32", "type f31"),
            "program line 3: \"f31\" is not an element type");
  EXPECT_EQ(message("value \"3\"", "value \"3"),
            "program line 6: a name lacks its closing quote");
  EXPECT_EQ(message("end\n", ""),
            "program line 16: the text ends without \"end\"; it is cut short");
  EXPECT_EQ(message("end\n", "end\nend\n"),
            "program line 17: text after \"end\"");
  EXPECT_EQ(message("for 1.5", "for nan"),
            "program line 11: \"nan\" is not a valid time in microseconds");
  EXPECT_EQ(
      message("after d0", "after x0"),
      "program line 15: \"x0\" is not a dependence; it begins with d, a, o "
      "or c");
  EXPECT_EQ(message("after d0", "after d1"),
            "program: edge 1 -> 1 does not go from a node to a later one");
  EXPECT_EQ(message("copy 0 0", "use 0 r 0:1\ncopy 0 0"),
            "program line 8: \"use\" is out of place");
  EXPECT_EQ(message("copy 0 0+16*4:4 1 0+16*4:4\n", ""),
            "program line 8: \"use\" is out of place");
  EXPECT_EQ(message("use 0 r", "member 0 send 0 0:1 recv 0 0:1\nuse 0 r"),
            "program line 9: \"member\" does not follow \"collective\"");
}

// What a stranger could write to make the replayer leave its buffers.
TEST_F(ProgramTextErrors, LeaveNoBuffer) {
  auto contains = [&](const std::string &from, const std::string &to,
                      const char *part) {
    std::string got = message(from, to);
    EXPECT_NE(got.find(part), std::string::npos) << to << ": " << got;
  };
  contains("copy 0 0+", "copy 9 0+", "names buffer 9");
  contains("copy 0 0+16*4:4", "copy 0 4+16*4:4", "touches bytes 4 to 68");
  contains("copy 0 0+16*4:4", "copy 0 0+16*-4:4", "touches bytes -60 to 4");
  contains("1 0+16*4:4", "1 0+15*4:4", "different element count");
  contains("copy 0 0+16*4:4", "copy 0 0+-16*4:4", "negative size");
  // 2^62 elements of 4 bytes wrap to 0 bytes, 2^60 steps of 16 to the start.
  contains("copy 0 0+16*4:4", "copy 0 0+4611686018427387904*4:4",
           "more bytes than any memory");
  contains("copy 0 0+16*4:4", "copy 0 0+1152921504606846977*16:4",
           "more bytes than any memory");
  contains("copy 0 0+16*4:4", "copy 0 0+4294967296*0+4294967296*0:4",
           "more bytes than any");
  contains("copy 0 0+16*4:4", "copy 0 0+16*4:0", "elements of 0 bytes");
  contains("copy 0 0+16*4:4", "copy 0 9223372036854775807+1*1:4",
           "more bytes than any memory");
  contains("copy 0 0+16*4:4", "copy 0 0+16*4:4294967295", "touches bytes 0");
  contains("use 0 r 0+16*4:4", "use 0 r 0+17*4:4", "touches bytes 0 to 68");
  // An access that no use speaks of would escape the proof of the plan.
  contains("use 0 r 0+16*4:4\n", "", "reads buffer \"x\" without saying so");
  contains("use 1 w 0+64*1:1", "use 1 w 0+63*1:1",
           "writes buffer \"t\" without saying so");
  // An argument the user binds is as large as its shape says.
  contains("shape 4 4 buffer 0", "shape 4 5 buffer 0", "has 64 bytes");
  contains("buffer 0\nargument", "buffer 1\nargument", "is not an argument");
  contains("buffer 0\nargument", "buffer 2\nargument", "is buffer 2");
  contains("shape value \"3\"", "shape buffer 0", "has role specialised");
  contains("x\" inout", "x\" specialised", "has role specialised");
}

TEST_F(ProgramTextErrors, LackingBlobs) {
  std::string hash(64, '0');
  EXPECT_EQ(
      message("argument \"x\"", "kernel \"k\" block 1 1 1 arguments 0 hash "
                                "\"h\" at \"\" source " +
                                    hash + "\nargument \"x\""),
      "program line 5: there is nothing of hash " + hash);
  EXPECT_EQ(message("argument \"x\"",
                    "kernel \"k\" block 1 1 1 arguments 0 hash "
                    "\"h\" at \"\" source 12\nargument \"x\""),
            "program line 5: expected a SHA-256 of 64 hexadecimal digits");
}

// No prefix of a program and no changed byte may crash the reader; what it
// still accepts can be planned, and the plan passes verify().
TEST(ProgramText, SurvivesDamage) {
  Machine model = hostModel();
  size_t accepted = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Program program = randomProgram(seed);
    Blobs blobs;
    std::string text = toText(program, blobs);
    for (size_t length = 0; length + 4 < text.size(); length += 17)
      EXPECT_FALSE(readProgram(text.substr(0, length), readerOf(blobs)));
    std::mt19937_64 random(seed);
    const std::string letters = "0123456789+-*: \nabdrsw\"";
    for (int k = 0; k < 400; ++k) {
      std::string damaged = text;
      for (uint64_t n = 1 + random() % 2; n > 0; --n)
        damaged[random() % damaged.size()] =
            random() % 8 ? letters[random() % letters.size()] : char(random());
      Result<Program> back = readProgram(damaged, readerOf(blobs));
      if (!back)
        continue;
      ++accepted;
      Result<Plan> plan = schedule(back->dag, model);
      ASSERT_TRUE(plan) << plan.error().message;
    }
  }
  EXPECT_GT(accepted, 100u);
}
