// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names, roles, phases and places of arguments and buffers.
#include "ImportText.h"

#include <gtest/gtest.h>

namespace mgpu::planner {
namespace {

std::string memcpy(const std::string &target, const std::string &targetDevice,
                   const std::string &source, const std::string &sourceDevice) {
  return "  mgpu.memcpy " + target + ", " + source + ", " + targetDevice +
         ", " + sourceDevice +
         " : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device\n";
}
std::string toDevice(const std::string &target, const std::string &source) {
  return memcpy(target, "%d0", source, "%host");
}
std::string toHost(const std::string &target, const std::string &source) {
  return memcpy(target, "%host", source, "%d0");
}
const std::string storeA =
    launch("%d0", "", "    memref.store %one, %a[%i] : memref<64xf32>\n");

Phase phaseOf(const Dag &dag, size_t node) { return dag.nodes[node].phase; }

TEST(Argument, NamesComeFromAttributeThenText) {
  Imported imported = importText(
      program("", "%plain: memref<64xf32>, %shown: memref<64xf32> {mgpu.name = "
                  "\"wanted\"}, %2: memref<64xf32>"));
  ASSERT_TRUE(imported.program) << imported.text();
  ASSERT_EQ(imported.program->arguments.size(), 3u);
  EXPECT_EQ(imported.program->arguments[0].name, "plain");
  EXPECT_EQ(imported.program->arguments[1].name, "wanted");
  EXPECT_EQ(imported.program->arguments[2].name, "2");
  // Buffers are known by their SSA names, numbered where these repeat.
  std::vector<std::string> names;
  for (const Buffer &buffer : imported.dag().buffers)
    names.push_back(buffer.name);
  EXPECT_EQ(names, (std::vector<std::string>{"plain", "wanted", "2", "a", "a2",
                                             "a3", "b", "b2", "b3"}));
}

// Locations in the text say nothing of where a value is defined in it.
TEST(Argument, NamesSurviveLocationsInTheText) {
  std::string text = program(
      "  %m = memref.alloc() : memref<64xf32> loc(\"elsewhere.py\":7:1)\n" +
          toDevice("%a", "%m"),
      "%plain: memref<64xf32> loc(\"elsewhere.py\":3:1), %n: memref<64xf32> "
      "loc(unknown)");
  Imported imported = importText(text);
  ASSERT_TRUE(imported.program) << imported.text();
  EXPECT_EQ(imported.program->arguments[0].name, "plain");
  EXPECT_EQ(imported.program->arguments[1].name, "n");
  bool found = false;
  for (const Buffer &buffer : imported.dag().buffers)
    found |= buffer.name == "m";
  EXPECT_TRUE(found);
}

TEST(Argument, NamesRepeatAcrossLoopTrips) {
  Imported imported =
      importText(program("  scf.for %q = %c0 to %c2 step %c1 {\n"
                         "  %m = mgpu.alloc %d0 : !mgpu.device -> "
                         "memref<64xf32>\n  }\n"));
  ASSERT_TRUE(imported.program) << imported.text();
  EXPECT_EQ(imported.dag().buffers[7].name, "m");
  EXPECT_EQ(imported.dag().buffers[8].name, "m.2");
}

TEST(Argument, RolesAreInferredFromUses) {
  std::string half =
      "  %half = memref.subview %part[0] [32] [1] : memref<64xf32> to "
      "memref<32xf32, strided<[1]>>\n"
      "  %some = memref.subview %a[0] [32] [1] : memref<64xf32> to "
      "memref<32xf32, strided<[1]>>\n"
      "  mgpu.memcpy %half, %some, %host, %d0 : memref<32xf32, "
      "strided<[1]>>, memref<32xf32, strided<[1]>>, !mgpu.device, "
      "!mgpu.device\n";
  Imported imported = importText(
      program(toDevice("%a", "%in") + toHost("%out", "%a") +
                  toDevice("%a2", "%both") + toHost("%both", "%a2") + half,
              "%in: memref<64xf32>, %out: memref<64xf32>, %both: "
              "memref<64xf32>, %part: memref<64xf32>, %idle: memref<64xf32>"));
  ASSERT_TRUE(imported.program) << imported.text();
  std::vector<ArgumentRole> roles;
  for (const ProgramArgument &argument : imported.program->arguments)
    roles.push_back(argument.role);
  // What is written in part keeps the rest of its value.
  EXPECT_EQ(roles,
            (std::vector<ArgumentRole>{
                ArgumentRole::Input, ArgumentRole::Output, ArgumentRole::InOut,
                ArgumentRole::InOut, ArgumentRole::Input}));
}

TEST(Argument, GivenRoleWinsOverAttribute) {
  std::string body = toDevice("%a", "%w") + storeA;
  std::string argument = "%w: memref<64xf32> {mgpu.role = \"resident\"}";
  Imported resident = importText(program(body, argument));
  ASSERT_TRUE(resident.program) << resident.text();
  EXPECT_EQ(resident.program->arguments[0].role, ArgumentRole::Resident);
  EXPECT_EQ(phaseOf(resident.dag(), 0), Phase::Load);
  ImportOptions options;
  options.roles = {{"w", "input"}};
  Imported input = importText(program(body, argument), options);
  ASSERT_TRUE(input.program) << input.text();
  EXPECT_EQ(input.program->arguments[0].role, ArgumentRole::Input);
  EXPECT_EQ(phaseOf(input.dag(), 0), Phase::Replay);
}

TEST(Argument, WrongRolesAndNumbersAreRefused) {
  auto refused = [](const ImportOptions &options, const char *arguments,
                    ErrorKind kind, const char *message) {
    Imported imported = importText(program("", arguments), options);
    ASSERT_TRUE(imported.error) << message;
    EXPECT_EQ(imported.error->kind, kind) << imported.error->message;
    EXPECT_NE(imported.error->message.find(message), std::string::npos)
        << imported.error->message;
  };
  ImportOptions options;
  const char *memref = "%x: memref<64xf32>";
  options.roles = {{"x", "specialised"}};
  refused(options, memref, ErrorKind::Usage, "cannot have role 'specialised'");
  options.roles = {{"x", "weights"}};
  refused(options, memref, ErrorKind::Usage, "cannot have role 'weights'");
  options.roles = {{"y", "input"}};
  refused(options, memref, ErrorKind::Usage, "has no argument 'y'");
  options.roles = {};
  refused(options, "%x: memref<64xf32> {mgpu.role = \"weights\"}",
          ErrorKind::Invalid, "cannot have role 'weights'");
  refused(options, "%x: memref<?xf32>", ErrorKind::Unsupported,
          "must have a static shape");
  for (const char *number : {"", "many", "1.5", "99999999999", "0x", "1 "}) {
    options.scalars = {{"n", number}};
    refused(options, "%n: i32", ErrorKind::Usage, "not a number of type i32");
  }
  options.scalars = {{"n", "300"}};
  refused(options, "%n: i8", ErrorKind::Usage, "not a number of type i8");
  options.scalars = {{"n", "1.0.0"}};
  refused(options, "%n: f32", ErrorKind::Usage, "not a number of type f32");
  options.scalars = {{"n", "1e400"}};
  refused(options, "%n: f32", ErrorKind::Usage, "'1e400' is too large for f32");
  options.scalars = {{"n", "0x10"}};
  refused(options, "%n: index", ErrorKind::Usage, "not a number of type index");
}

TEST(Argument, ScalarsAreReadAsArraysNumbersAre) {
  // Each decides a grid; a number in octal would show.
  auto sizeOf = [](const char *argument, const char *size, const char *text) {
    ImportOptions options;
    options.scalars = {{"n", text}};
    Imported imported = importText(
        program(std::string(size) +
                    "  mgpu.launch %d0 grid(%size) block(%c1) {\n"
                    "    %i = gpu.block_id x\n"
                    "    memref.store %one, %a[%i] : memref<64xf32>\n  }\n",
                argument),
        options);
    EXPECT_TRUE(imported.program) << text << imported.text();
    return std::get<KernelCall>(kernelNodes(imported.dag())[0]->work).grid.x;
  };
  const char *same = "  %zero = arith.constant 0 : index\n"
                     "  %size = arith.addi %n, %zero : index\n";
  EXPECT_EQ(sizeOf("%n: index", same, "010"), 10);
  EXPECT_EQ(sizeOf("%n: index", same, "+7"), 7);
  const char *chosen = "  %three = arith.constant 3 : index\n"
                       "  %five = arith.constant 5 : index\n"
                       "  %size = arith.select %n, %three, %five : index\n";
  EXPECT_EQ(sizeOf("%n: i1", chosen, "true"), 3);
  EXPECT_EQ(sizeOf("%n: i1", chosen, "false"), 5);
  const char *wide = "  %size = arith.index_cast %n : i16 to index\n";
  EXPECT_EQ(sizeOf("%n: i16", wide, "40"), 40);
}

TEST(Argument, WhatIsWrittenIsNoInput) {
  const std::string body = storeA + toHost("%y", "%a");
  ImportOptions options;
  options.roles = {{"y", "input"}};
  Imported given = importText(program(body, "%y: memref<64xf32>"), options);
  ASSERT_TRUE(given.error);
  EXPECT_EQ(given.error->kind, ErrorKind::Usage);
  EXPECT_NE(given.error->message.find("argument 'y' of @main cannot have role "
                                      "'input', as the program writes it"),
            std::string::npos)
      << given.error->message;
  Imported attribute =
      importText(program(body, "%y: memref<64xf32> {mgpu.role = \"input\"}"));
  ASSERT_TRUE(attribute.error);
  EXPECT_EQ(attribute.error->kind, ErrorKind::Invalid);
}

TEST(Argument, EachNameIsOfOne) {
  auto refused = [](const char *arguments, const char *message) {
    Imported imported = importText(program("", arguments));
    ASSERT_TRUE(imported.error) << message;
    EXPECT_EQ(imported.error->kind, ErrorKind::Invalid);
    EXPECT_EQ(imported.error->message, message);
  };
  refused("%x: memref<4xf32> {mgpu.name = \"v\"}, %v: memref<4xf32>",
          "argument 1 of @main is named 'v', as argument 0 is: give it another "
          "name (mgpu.name)");
  refused("%x: memref<4xf32>, %y: memref<4xf32> {mgpu.name = \"0\"}",
          "argument 1 of @main is named '0', which reads as the number of an "
          "argument: give it another name (mgpu.name)");
  refused(
      "%x: memref<4xf32> {mgpu.name = \"\"}",
      "argument 0 of @main is named '', which is not a name: give it another "
      "name (mgpu.name)");
  EXPECT_TRUE(
      importText(program("", "%x: memref<4xf32> {mgpu.name = \"0\"}")).program);
}

TEST(Phase, ResidentCopiesRunAtLoadAndFetch) {
  std::string resident = "%w: memref<64xf32> {mgpu.role = \"resident\"}";
  Imported imported = importText(
      program(toDevice("%a", "%w") + storeA + toHost("%w", "%a"), resident));
  ASSERT_TRUE(imported.program) << imported.text();
  EXPECT_EQ(phaseOf(imported.dag(), 0), Phase::Load);
  EXPECT_EQ(phaseOf(imported.dag(), 1), Phase::Replay);
  EXPECT_EQ(phaseOf(imported.dag(), 2), Phase::Fetch);
  // What crosses phases outlives a replay; what does not is temporary.
  for (const Buffer &buffer : imported.dag().buffers)
    if (!buffer.device.isHost()) {
      EXPECT_EQ(buffer.role, buffer.name == "a" ? BufferRole::Resident
                                                : BufferRole::Temporary)
          << buffer.name;
    }
}

TEST(Phase, ResidentCopyAmidReplayedWorkIsReplayed) {
  std::string resident = "%w: memref<64xf32> {mgpu.role = \"resident\"}";
  // The copy in follows a store of the same buffer: each replay repeats it.
  Imported late = importText(program(storeA + toDevice("%a", "%w"), resident));
  ASSERT_TRUE(late.program) << late.text();
  EXPECT_EQ(phaseOf(late.dag(), 1), Phase::Replay);
  // The copy out is overwritten, then read again.
  Imported early =
      importText(program(storeA + toHost("%w", "%a") + toDevice("%a2", "%w") +
                             storeA + toHost("%w", "%a2"),
                         resident));
  ASSERT_TRUE(early.program) << early.text();
  EXPECT_EQ(phaseOf(early.dag(), 1), Phase::Replay);
  EXPECT_EQ(phaseOf(early.dag(), 2), Phase::Replay);
  EXPECT_EQ(phaseOf(early.dag(), 4), Phase::Fetch);
}

// Where two uploads meet, the place on the device is only on the way: hoisted
// both, the first would be lost; hoisted one, the next replay would not see it.
TEST(Phase, ContestedUploadsAreReplayed) {
  const std::string residents =
      "%w: memref<64xf32> {mgpu.role = \"resident\"}, "
      "%v: memref<64xf32> {mgpu.role = \"resident\"}, "
      "%x: memref<64xf32>, %y: memref<64xf32>";
  for (const char *second : {"%v", "%x"}) {
    Imported imported = importText(program(
        toDevice("%a", "%w") + toHost("%y", "%a") + toDevice("%a", second),
        residents));
    ASSERT_TRUE(imported.program) << imported.text();
    for (size_t k = 0; k < 3; ++k)
      EXPECT_EQ(phaseOf(imported.dag(), k), Phase::Replay) << second << k;
  }
  // Other bytes of one buffer, and what a device puts there, are not a contest.
  auto half = [](const std::string &name, const std::string &of,
                 const std::string &at) {
    return "  " + name + " = memref.subview " + of + "[" + at +
           "] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], "
           "offset: " +
           at + ">>\n";
  };
  auto upload = [](const std::string &to, const std::string &from,
                   const std::string &at) {
    const std::string type = "memref<32xf32, strided<[1], offset: " + at + ">>";
    return "  mgpu.memcpy " + to + ", " + from + ", %d0, %host : " + type +
           ", " + type + ", !mgpu.device, !mgpu.device\n";
  };
  Imported halves = importText(
      program(half("%a0", "%a", "0") + half("%a1", "%a", "32") +
                  half("%w0", "%w", "0") + half("%v1", "%v", "32") +
                  upload("%a0", "%w0", "0") + upload("%a1", "%v1", "32") +
                  memcpy("%a", "%d0", "%a2", "%d0"),
              residents));
  ASSERT_TRUE(halves.program) << halves.text();
  EXPECT_EQ(phaseOf(halves.dag(), 0), Phase::Load);
  EXPECT_EQ(phaseOf(halves.dag(), 1), Phase::Load);
}

TEST(Phase, ScatterAndReplicateOfResidentRunAtLoad) {
  std::string body =
      "  %l = mgpu.alloc %d0 : !mgpu.device -> memref<32xf32>\n"
      "  %r = mgpu.alloc %d1 : !mgpu.device -> memref<32xf32>\n"
      "  mgpu.scatter %w, %host, [%l, %r], [%d0, %d1] axis = 0 : "
      "memref<64xf32>, !mgpu.device, [memref<32xf32>, memref<32xf32>], "
      "[!mgpu.device, !mgpu.device]\n"
      "  mgpu.replicate %w, %host, [%d0, %d1], [%a, %b] : memref<64xf32>, "
      "!mgpu.device, [!mgpu.device, !mgpu.device], [memref<64xf32>, "
      "memref<64xf32>]\n";
  Imported imported = importText(
      program(body, "%w: memref<64xf32> {mgpu.role = \"resident\"}"));
  ASSERT_TRUE(imported.program) << imported.text();
  ASSERT_EQ(imported.dag().nodes.size(), 4u);
  for (size_t k = 0; k < 4; ++k)
    EXPECT_EQ(phaseOf(imported.dag(), k), Phase::Load) << k;
}

// `body` after a constant %k of 64 numbers.
static Imported withConstant(const std::string &body,
                             const std::string &arguments) {
  return importText(
      "memref.global constant @k : memref<64xf32> = "
      "dense<2.0>\n" +
      program("  %k = memref.get_global @k : memref<64xf32>\n" + body,
              arguments));
}

// A constant that was on the device before is there in the next replay.
TEST(Phase, ConstantsAreUploadedOnce) {
  Imported imported =
      withConstant(toDevice("%a", "%k") + memcpy("%a2", "%d0", "%a", "%d0") +
                       toHost("%x", "%a2"),
                   "%x: memref<64xf32>");
  ASSERT_TRUE(imported.program) << imported.text();
  EXPECT_EQ(phaseOf(imported.dag(), 0), Phase::Load);
  EXPECT_EQ(phaseOf(imported.dag(), 1), Phase::Replay);
  for (const Buffer &buffer : imported.dag().buffers)
    if (!buffer.device.isHost()) {
      EXPECT_EQ(buffer.role, buffer.name == "a" ? BufferRole::Resident
                                                : BufferRole::Temporary)
          << buffer.name;
    }
}

// What a device, or the host, writes over a constant has to give way to it in
// the next replay; and so does work that used its place before it came.
TEST(Phase, ConstantsThatAreOverwrittenAreUploadedAgain) {
  const std::string arguments = "%x: memref<64xf32>, %y: memref<64xf32>";
  for (const std::string &after :
       {storeA, toDevice("%a", "%x"), memcpy("%a", "%d0", "%a2", "%d0")}) {
    Imported imported = withConstant(
        toDevice("%a", "%k") + toHost("%y", "%a") + after, arguments);
    ASSERT_TRUE(imported.program) << imported.text();
    EXPECT_EQ(phaseOf(imported.dag(), 0), Phase::Replay) << after;
  }
  Imported late =
      withConstant(toHost("%y", "%a") + toDevice("%a", "%k"), arguments);
  ASSERT_TRUE(late.program) << late.text();
  EXPECT_EQ(phaseOf(late.dag(), 1), Phase::Replay);
}

TEST(Ownership, PlaceComesFromWhereTheBufferIsMade) {
  Imported imported = importText(program(
      "  %m = memref.alloc() : memref<64xf32>\n"
      "  %v = memref.subview %b[8] [8] [1] : memref<64xf32> to memref<8xf32, "
      "strided<[1], offset: 8>>\n"));
  ASSERT_TRUE(imported.program) << imported.text();
  for (const Buffer &buffer : imported.dag().buffers) {
    int32_t expected = buffer.name == "x" || buffer.name == "m" ? -1
                       : buffer.name[0] == 'a'                  ? 0
                                                                : 1;
    EXPECT_EQ(buffer.device.value, expected) << buffer.name;
  }
}

TEST(Ownership, CopiesGoWhereTheBuffersAreAndWarn) {
  // Both devices are named wrongly.
  Imported imported = importText(program(memcpy("%a", "%d1", "%x", "%d0")));
  ASSERT_TRUE(imported.program) << imported.text();
  EXPECT_EQ(imported.countWarnings("where it lives wins"), 2u)
      << imported.text();
  EXPECT_EQ(imported.dag().nodes[0].devices, std::vector<DeviceId>{{0}});
}

TEST(Ownership, KernelsTouchTheirOwnDeviceAlone) {
  std::string body = "    memref.store %one, %b[%i] : memref<64xf32>\n";
  Imported other = importText(program(launch("%d0", "", body)));
  EXPECT_EQ(other.countErrors("kernel on device 0 uses buffer 'b' of device 1"),
            1u)
      << other.text();
  Imported host = importText(program(
      launch("%d0", "", "    memref.store %one, %x[%i] : memref<64xf32>\n")));
  EXPECT_EQ(host.countErrors("kernel on device 0 uses buffer 'x' of the host"),
            1u)
      << host.text();
  Imported onHost = importText(program(launch("%host", "", "")));
  EXPECT_EQ(onHost.countErrors("cannot launch a kernel on the host"), 1u)
      << onHost.text();
}

} // namespace
} // namespace mgpu::planner
