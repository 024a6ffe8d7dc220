// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plugin as its clients call it: MGPU_PJRT_LIBRARY is loaded, and compiles
// with MGPU_PJRT_COMMAND.
#include "tests/pjrt/Client.h"

#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <thread>

using namespace mgpu::test;
using Floats = Client::Floats;
namespace fs = std::filesystem;

namespace {

const std::string add = R"(
module @adds {
  func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32},
                         %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
})";
const std::string allReduce = R"(
module @sums {
  func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "stablehlo.all_reduce"(%a) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>} : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
})";
/// The sum of the rows of a matrix whose rows or columns are cut.
std::string rows(const std::string &sharding) {
  return "module @rows { func.func public @main(%a: tensor<4x2xf32> "
         "{mhlo.sharding = \"" +
         sharding +
         "\"}) -> tensor<4xf32> {\n"
         "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
         "%0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across "
         "dimensions = [1] : (tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>\n"
         "return %0 : tensor<4xf32> } }";
}

class Pjrt : public testing::Test {
protected:
  static const PJRT_Api &api() {
    static const PJRT_Api &loaded = plugin(MGPU_PJRT_LIBRARY);
    return loaded;
  }
  Pjrt() { ::setenv("MGPU_TUNE", MGPU_PJRT_COMMAND, 1); }
  ~Pjrt() override { fs::remove_all(cache); }
  std::vector<std::pair<std::string, std::string>>
  options(const std::string &target = "host:4") {
    return {{"target", target}, {"cache", cache}};
  }

  const std::string cache =
      testing::TempDir() + "pjrt-cache-" + std::to_string(::getpid());
};

#define EXPECT_SAYS(text, words)                                               \
  EXPECT_NE(std::string(text).find(words), std::string::npos) << (text)

TEST_F(Pjrt, AddsAndDonates) {
  Client client(api(), options("host"));
  ASSERT_EQ(client.error, "");
  PJRT_LoadedExecutable *executable = nullptr;
  ASSERT_EQ(client.compile(add, executable), "");
  PJRT_Buffer *a = client.floats({1, 2, 3, 4}),
              *b = client.floats({10, 20, 30, 40});
  std::vector<PJRT_Buffer *> results;
  ASSERT_EQ(client.execute(executable, {{a, b}}, 1, results, {0}), "");
  EXPECT_EQ(client.read(results[0]), (Floats{11, 22, 33, 44}));
  EXPECT_EQ(client.read(a), (Floats{1, 2, 3, 4})); // it was not to be donated
  ASSERT_EQ(client.execute(executable, {{a, b}}, 1, results), "");
  EXPECT_EQ(client.read(results[0]), (Floats{11, 22, 33, 44}));
  client.read(a);
  EXPECT_SAYS(client.error, "9: the buffer f32[4] was deleted or donated");
  EXPECT_SAYS(client.execute(executable, {{a, b}}, 1, results),
              "9: the buffer f32[4] was deleted or donated");
  client.destroy(executable);
}

TEST_F(Pjrt, LargeBuffersAreUsedWhereTheyAre) {
  Client client(api(), options("host"));
  PJRT_LoadedExecutable *executable = nullptr;
  ASSERT_EQ(client.compile("func.func @main(%a: tensor<100000xf32>, %b: "
                           "tensor<100000xf32>) -> tensor<100000xf32> {\n%0 = "
                           "stablehlo.subtract %a, %b : tensor<100000xf32>\n"
                           "return %0 : tensor<100000xf32> }",
                           executable),
            "");
  std::vector<PJRT_Buffer *> results;
  PJRT_Buffer *state = client.floats(Floats(100000, 10));
  for (int step = 1; step <= 4; ++step) { // each takes what the last one gave
    PJRT_Buffer *one = client.floats(Floats(100000, 1));
    ASSERT_EQ(client.execute(executable, {{state, one}}, 1, results), "");
    EXPECT_EQ(client.read(results[0]), Floats(100000, float(10 - step)));
    EXPECT_EQ(client.read(state), Floats(100000, float(11 - step)));
    state = results[0];
  }
  ASSERT_EQ(client.execute(executable, {{state, state}}, 1, results), "");
  EXPECT_EQ(client.read(results[0]), Floats(100000, 0));
  client.destroy(executable);
}

TEST_F(Pjrt, RefusesCallsThatDoNotFit) {
  Client client(api(), options());
  PJRT_LoadedExecutable *executable = nullptr;
  ASSERT_EQ(client.compile(add, executable), "");
  PJRT_Buffer *a = client.floats({1, 2, 3, 4}), *c = client.floats({1, 2});
  std::vector<PJRT_Buffer *> results;
  EXPECT_SAYS(client.execute(executable, {{a}}, 1, results),
              "3: the executable takes 2 arguments, and the call has 1");
  EXPECT_SAYS(client.execute(executable, {{a, c}}, 1, results),
              "3: argument 1 is f32[2], and the executable takes f32[4]");
  EXPECT_SAYS(
      client.execute(executable, {{a, a}, {a, a}}, 1, results),
      "3: the executable is for 1 devices, and the call has lists of 2");
  EXPECT_SAYS(client.execute(executable, {{a, nullptr}}, 1, results),
              "3: argument 1 of device 0 is null");
  auto end = arguments<PJRT_LoadedExecutable_Delete_Args>();
  end.executable = executable;
  EXPECT_EQ(client.said(api().PJRT_LoadedExecutable_Delete(&end)), "");
  EXPECT_SAYS(client.execute(executable, {{a, a}}, 1, results),
              "9: the executable was deleted");
  client.destroy(executable);
  for (const auto &[dims, words] :
       {std::pair<std::vector<int64_t>, std::string>{{-1}, "size -1"},
        {{int64_t(1) << 40, int64_t(1) << 40}, "more than a memory holds"}}) {
    EXPECT_EQ(client.buffer(&a, PJRT_Buffer_Type_F32, dims), nullptr);
    EXPECT_SAYS(client.error, words);
  }
  EXPECT_EQ(client.buffer(&a, PJRT_Buffer_Type(14), {1}), nullptr);
  EXPECT_SAYS(client.error, "12: element type 14 of PJRT");
}

TEST_F(Pjrt, DevicesMeetInCollectives) {
  Client client(api(), options());
  PJRT_LoadedExecutable *executable = nullptr;
  ASSERT_EQ(client.compile(allReduce, executable, Client::counts(3, 1)), "");
  std::vector<std::vector<PJRT_Buffer *>> given;
  for (size_t device = 0; device < 3; ++device)
    given.push_back({client.floats({float(device), 1}, device)});
  std::vector<PJRT_Buffer *> results;
  ASSERT_EQ(client.execute(executable, given, 1, results), "");
  for (PJRT_Buffer *result : results)
    EXPECT_EQ(client.read(result), (Floats{3, 3}));
  client.destroy(executable);
  Client small(api(), options("host:2"));
  EXPECT_SAYS(small.compile(allReduce, executable, Client::counts(3, 1)),
              "3: the program is for 3 devices, and there are 2: "
              "MGPU_PJRT_TARGET says how many");
}

TEST_F(Pjrt, PartitionsHavePartsByTheShardings) {
  Client client(api(), options());
  struct Case {
    const char *sharding;
    std::vector<Floats> parts; ///< of 0, 1, ... 7 as four rows
    std::vector<int64_t> dims;
  };
  for (const Case &each :
       {Case{"{devices=[2,1]<=[2]}", {{0, 1, 2, 3}, {4, 5, 6, 7}}, {2, 2}},
        Case{"{devices=[1,2]<=[2]}", {{0, 2, 4, 6}, {1, 3, 5, 7}}, {4, 1}},
        Case{"{devices=[2,1]1,0}", {{4, 5, 6, 7}, {0, 1, 2, 3}}, {2, 2}},
        Case{"{replicated}",
             {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}},
             {4, 2}}}) {
    PJRT_LoadedExecutable *executable = nullptr;
    ASSERT_EQ(
        client.compile(rows(each.sharding), executable, Client::counts(1, 2)),
        "");
    std::vector<std::vector<PJRT_Buffer *>> given;
    for (size_t device = 0; device < 2; ++device)
      given.push_back({client.buffer(each.parts[device].data(),
                                     PJRT_Buffer_Type_F32, each.dims, device)});
    std::vector<PJRT_Buffer *> results;
    ASSERT_EQ(client.execute(executable, given, 1, results), "");
    for (PJRT_Buffer *result : results)
      EXPECT_EQ(client.read(result), (Floats{1, 5, 9, 13})) << each.sharding;
    client.destroy(executable);
  }
}

TEST_F(Pjrt, ManualComputationsMeet) {
  Client client(api(), options());
  PJRT_LoadedExecutable *executable = nullptr;
  ASSERT_EQ(client.compile(R"(
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<2xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%mine: tensor<2x2xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%mine init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
    %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %3 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    sdy.return %2 : tensor<2xf32>
  } : (tensor<4x2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
})",
                           executable, Client::counts(1, 2)),
            "");
  std::vector<PJRT_Buffer *> results;
  const Floats front{0, 1, 2, 3}, back{4, 5, 6, 7};
  ASSERT_EQ(client.execute(
                executable,
                {{client.buffer(front.data(), PJRT_Buffer_Type_F32, {2, 2})},
                 {client.buffer(back.data(), PJRT_Buffer_Type_F32, {2, 2}, 1)}},
                1, results),
            "");
  for (PJRT_Buffer *result : results)
    EXPECT_EQ(client.read(result), (Floats{12, 16}));
  client.destroy(executable);
}

TEST_F(Pjrt, TypesKeepTheirNamesAndBits) {
  Client client(api(), options());
  PJRT_LoadedExecutable *executable = nullptr;
  ASSERT_EQ(
      client.compile(R"(func.func @main(%a: tensor<ui32>, %b: tensor<3xi1>,
      %c: tensor<2xbf16>) -> (tensor<ui32>, tensor<3xi1>, tensor<2xbf16>, tensor<0x4xf32>) {
    %0 = stablehlo.add %a, %a : tensor<ui32>
    %1 = stablehlo.not %b : tensor<3xi1>
    %2 = stablehlo.add %c, %c : tensor<2xbf16>
    %3 = stablehlo.constant dense<0.0> : tensor<0x4xf32>
    return %0, %1, %2, %3 : tensor<ui32>, tensor<3xi1>, tensor<2xbf16>, tensor<0x4xf32> })",
                     executable),
      "");
  const uint32_t a = 0x80000001;
  const uint8_t b[] = {1, 0, 1};
  const uint16_t c[] = {0x3f80, 0xbf80}; // 1, -1
  std::vector<PJRT_Buffer *> results;
  ASSERT_EQ(client.execute(executable,
                           {{client.buffer(&a, PJRT_Buffer_Type_U32, {}),
                             client.buffer(b, PJRT_Buffer_Type_PRED, {3}),
                             client.buffer(c, PJRT_Buffer_Type_BF16, {2})}},
                           4, results),
            "");
  std::vector<int> types;
  for (PJRT_Buffer *result : results) {
    auto type = arguments<PJRT_Buffer_ElementType_Args>();
    type.buffer = result;
    api().PJRT_Buffer_ElementType(&type);
    types.push_back(type.type);
  }
  EXPECT_EQ(types, (std::vector<int>{8, 1, 13, 11}));
  uint32_t twice = 0;
  uint8_t nots[3];
  uint16_t sums[2];
  EXPECT_EQ(client.read(results[0], &twice, 4), "");
  EXPECT_EQ(client.read(results[1], nots, 3), "");
  EXPECT_EQ(client.read(results[2], sums, 4), "");
  EXPECT_EQ(twice, 2u);
  EXPECT_EQ(std::vector<int>(nots, nots + 3), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(sums[0], 0x4000);
  EXPECT_EQ(sums[1], 0xc000);
  EXPECT_EQ(client.read(results[3]), Floats());
  client.destroy(executable);
}

TEST_F(Pjrt, SaysWhyAProgramIsNotCompiled) {
  Client client(api(), options());
  PJRT_LoadedExecutable *executable = nullptr;
  EXPECT_SAYS(client.compile("no program", executable), "3: program.mlir:1:1");
  EXPECT_SAYS(client.compile("", executable), "3: ");
  EXPECT_SAYS(client.compile("ML\xefR\x01\x02\x03", executable),
              "cannot be decoded");
  EXPECT_SAYS(client.compile("func.func @main(%a: tensor<2xcomplex<f32>>) -> "
                             "tensor<2xcomplex<f32>> { return %a : "
                             "tensor<2xcomplex<f32>> }",
                             executable),
              "12: ");
  EXPECT_SAYS(client.compile("func.func @main(%a: tensor<?xf32>) -> "
                             "tensor<?xf32> { return %a : tensor<?xf32> }",
                             executable),
              "12: ");
  EXPECT_SAYS(client.compile(add, executable, std::string("\x1a\x7f\x20", 3)),
              "3: the compile options are no CompileOptionsProto");
  EXPECT_SAYS(client.compile(add, executable,
                             std::string("\x1a\x04\x20\xff\xff\x7f", 6)),
              "replicas: there are 1024 at most");
  for (const auto &[name, text, words] :
       {std::tuple("target", "cuda:x", "3: "),
        std::tuple("target", "host:x", "3: target 'host:x'"),
        std::tuple("targett", "host", "did you mean 'target'")})
    EXPECT_SAYS(Client(api(), {{name, text}}).error, words);
}

TEST_F(Pjrt, ACompilerThatIsLateOrGoneIsAnError) {
  const std::string sleeps = testing::TempDir() + "sleeps";
  FILE *file = std::fopen(sleeps.c_str(), "w");
  std::fputs("#!/bin/sh\nsleep 100 &\nsleep 100\n", file);
  std::fclose(file);
  fs::permissions(sleeps, fs::perms::owner_all);
  PJRT_LoadedExecutable *executable = nullptr;
  ::setenv("MGPU_TUNE", sleeps.c_str(), 1);
  Client late(api(), {{"compile_seconds", "0.2"}, {"cache", cache}});
  EXPECT_SAYS(late.compile(add, executable),
              "4: the program was not compiled within 0.2 s");
  ::setenv("MGPU_TUNE", "/nowhere/mgpu-tune", 1);
  EXPECT_SAYS(late.compile(add, executable),
              "5: '/nowhere/mgpu-tune' cannot be started");
  fs::remove(sleeps);
}

TEST_F(Pjrt, ABundleThatDoesNotOpenIsNotKept) {
  const std::string damages = testing::TempDir() + "damages";
  FILE *file = std::fopen(damages.c_str(), "w");
  std::fputs("#!/bin/sh\necho none > \"$4\"\n", file);
  std::fclose(file);
  fs::permissions(damages, fs::perms::owner_all);
  PJRT_LoadedExecutable *executable = nullptr;
  Client client(api(), options());
  ::setenv("MGPU_TUNE", damages.c_str(), 1);
  EXPECT_SAYS(client.compile(add, executable), "made no bundle that opens");
  fs::remove(damages);
  // A client may have no news of its children.
  ::setenv("MGPU_TUNE", MGPU_PJRT_COMMAND, 1);
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(client.compile(add, executable), "");
  ::signal(SIGCHLD, before);
  client.destroy(executable);
}

TEST_F(Pjrt, AProgramMayDoNothing) {
  Client client(api(), options());
  PJRT_LoadedExecutable *executable = nullptr;
  std::vector<PJRT_Buffer *> results;
  ASSERT_EQ(client.compile("func.func @main() { return }", executable), "");
  EXPECT_EQ(client.execute(executable, {{}}, 0, results), "");
  client.destroy(executable);
}

TEST_F(Pjrt, CompilesOnceForAllProcesses) {
  PJRT_LoadedExecutable *executable = nullptr;
  {
    Client client(api(), options());
    ASSERT_EQ(client.compile(add, executable), "");
    client.destroy(executable);
  }
  ::setenv("MGPU_TUNE", "/nowhere/mgpu-tune", 1);
  Client client(api(), options());
  EXPECT_EQ(client.compile(add, executable), "");
  client.destroy(executable);
  for (const auto &entry : fs::directory_iterator(cache)) // is damaged
    fs::resize_file(entry.path(), fs::file_size(entry.path()) - 1);
  EXPECT_SAYS(client.compile(add, executable), "cannot be started");
}

TEST_F(Pjrt, SerialisedExecutablesAreBundles) {
  Client client(api(), options());
  PJRT_LoadedExecutable *executable = nullptr, *again = nullptr;
  ASSERT_EQ(client.compile(allReduce, executable, Client::counts(3, 1)), "");
  auto get = arguments<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = executable;
  ASSERT_EQ(client.said(api().PJRT_LoadedExecutable_GetExecutable(&get)), "");
  auto serialize = arguments<PJRT_Executable_Serialize_Args>();
  serialize.executable = get.executable;
  ASSERT_EQ(client.said(api().PJRT_Executable_Serialize(&serialize)), "");
  std::string bytes(serialize.serialized_bytes,
                    serialize.serialized_bytes_size);
  serialize.serialized_executable_deleter(serialize.serialized_executable);
  auto end = arguments<PJRT_Executable_Destroy_Args>();
  end.executable = get.executable;
  api().PJRT_Executable_Destroy(&end);
  client.destroy(executable);
  EXPECT_EQ(bytes.substr(0, 15), "SQLite format 3");

  auto load = [&](const std::string &text, const std::string &options = "") {
    auto args = arguments<PJRT_Executable_DeserializeAndLoad_Args>();
    args.client = client.client;
    args.serialized_executable = text.data();
    args.serialized_executable_size = text.size();
    args.overridden_serialized_compile_options = options.data();
    args.overridden_serialized_compile_options_size = options.size();
    const std::string said =
        client.said(api().PJRT_Executable_DeserializeAndLoad(&args));
    again = args.loaded_executable;
    return said;
  };
  EXPECT_SAYS(load(bytes, Client::counts(2, 1)),
              "3: the compile options say 2 replicas of 1 partitions, and the "
              "executable has 3 of 1");
  ASSERT_EQ(load(bytes, Client::counts(3, 1)), "");
  client.destroy(again);
  ASSERT_EQ(load(bytes), "");
  std::vector<PJRT_Buffer *> results;
  PJRT_Buffer *x = client.floats({1, 2}), *y = client.floats({1, 2}, 1),
              *z = client.floats({1, 2}, 2);
  ASSERT_EQ(client.execute(again, {{x}, {y}, {z}}, 1, results), "");
  EXPECT_EQ(client.read(results[2]), (Floats{3, 6}));
  EXPECT_SAYS(client.execute(again, {{x}, {x}, {z}}, 1, results),
              "argument 0 lies on device 0, and the executable takes it on "
              "device 1");
  client.destroy(again);
  // A page: one byte may be of those that nothing reads.
  for (size_t k = 0; k < std::min<size_t>(bytes.size() / 2, 4096); ++k)
    bytes[bytes.size() / 2 + k] ^= 1;
  EXPECT_SAYS(load(bytes), "3: ");
  EXPECT_SAYS(load(bytes.substr(0, 100)), "3: ");
  EXPECT_SAYS(load("anything"), "3: ");
  EXPECT_SAYS(load(""), "3: the serialized executable is empty");
}

TEST_F(Pjrt, CallersOfOtherVersionsKnowOtherFields) {
  Client client(api(), options());
  // An older caller's argument ends before the last field, which is not
  // written.
  struct {
    PJRT_Device_MemoryStats_Args args;
  } old{};
  std::memset(static_cast<void *>(&old), 0x5a, sizeof old);
  old.args.struct_size = offsetof(PJRT_Device_MemoryStats_Args, num_allocs);
  old.args.device = client.devices[0];
  EXPECT_EQ(client.said(api().PJRT_Device_MemoryStats(&old.args)), "");
  EXPECT_EQ(old.args.num_allocs, 0x5a5a5a5a5a5a5a5a);
  // A newer one's has fields behind those that are known.
  struct {
    PJRT_Client_ProcessIndex_Args args;
    int64_t newer;
  } young{};
  young.args.struct_size = sizeof young;
  young.args.client = client.client;
  young.newer = 7;
  EXPECT_EQ(client.said(api().PJRT_Client_ProcessIndex(&young.args)), "");
  EXPECT_EQ(young.newer, 7);
  // What has no size at all is refused.
  PJRT_Client_ProcessIndex_Args none{};
  EXPECT_SAYS(client.said(api().PJRT_Client_ProcessIndex(&none)),
              "3: a call has no argument");
  EXPECT_SAYS(client.said(api().PJRT_Client_ProcessIndex(nullptr)),
              "3: a call has no argument");
}

TEST_F(Pjrt, NoCallCrashesOnAnEmptyArgument) {
  Client client(api(), {});
  int refused = 0;
  auto count = [&](const std::string &text) { refused += !text.empty(); };
#define CALL(name, ...)                                                        \
  {                                                                            \
    auto args = arguments<PJRT_##name##_Args>();                               \
    if (std::string(#name) != "Client_Create" &&                               \
        std::string(#name) != "ExecuteContext_Create" &&                       \
        std::string(#name) != "Event_Create" &&                                \
        std::string(#name) != "TopologyDescription_Create")                    \
      count(client.said(api().PJRT_##name(&args)));                            \
  }
#define CALL_WITHOUT_ERROR(name, ...)                                          \
  {                                                                            \
    auto args = arguments<PJRT_##name##_Args>();                               \
    api().PJRT_##name(&args);                                                  \
  }
#include "pipeline/pjrt/Calls.inc"
  // All but those that end null or need no object.
  EXPECT_GT(refused, 115);
}

TEST_F(Pjrt, EventsAreSetOnce) {
  Client client(api(), options());
  auto made = arguments<PJRT_Event_Create_Args>();
  ASSERT_EQ(client.said(api().PJRT_Event_Create(&made)), "");
  std::string seen = "not called";
  struct Seen {
    Client *client;
    std::string *text;
  } user{&client, &seen};
  auto when = arguments<PJRT_Event_OnReady_Args>();
  when.event = made.event;
  when.user_arg = &user;
  when.callback = [](PJRT_Error *error, void *arg) {
    auto *to = static_cast<Seen *>(arg);
    *to->text = to->client->said(error);
  };
  EXPECT_EQ(client.said(api().PJRT_Event_OnReady(&when)), "");
  EXPECT_EQ(seen, "not called");
  auto set = arguments<PJRT_Event_Set_Args>();
  set.event = made.event;
  set.error_code = PJRT_Error_Code_OUT_OF_RANGE;
  set.error_message = "too far";
  set.error_message_size = 7;
  std::thread([&] { api().PJRT_Event_Set(&set); }).join();
  EXPECT_EQ(seen, "11: too far");
  EXPECT_SAYS(client.said(api().PJRT_Event_Set(&set)), "9: ");
  EXPECT_EQ(client.await(made.event), "11: too far");
}

TEST_F(Pjrt, ThreadsExecuteAtOnce) {
  Client client(api(), options());
  PJRT_LoadedExecutable *executable = nullptr;
  ASSERT_EQ(client.compile(add, executable), "");
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Client own(api(), options());
      for (int k = 0; k < 50; ++k) {
        const float value = float(t * 100 + k);
        PJRT_Buffer *x = own.floats({value, 0, 1, 2});
        std::vector<PJRT_Buffer *> results;
        if (own.execute(executable, {{x, x}}, 1, results, {0}).empty())
          right += own.read(results[0]) == Floats{2 * value, 0, 2, 4};
      }
    });
  for (std::thread &each : threads)
    each.join();
  EXPECT_EQ(right, 200);
  client.destroy(executable);
}

} // namespace
